// The words of the page. English is complete; a language that lacks a word shows the English one.

import { en } from "./lang-en.js";

const NAMES = { en: "English", zh: "中文" };
let words = en;
export let language = "en";

function wanted() {
  const asked = new URLSearchParams(location.search).get("lang") ?? sessionStorage.getItem("dragoman.lang");
  const liked = asked ? [asked] : navigator.languages ?? [navigator.language];
  const found = liked.map((one) => one.toLowerCase().split("-")[0]).find((one) => NAMES[one]);
  return found ?? "en";
}

/** Load the language that the address or the browser asks for. */
export async function chooseLanguage(name = wanted()) {
  language = NAMES[name] ? name : "en";
  words = language === "zh" ? (await import("./lang-zh.js")).zh : en;
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  document.title = t("title");
}

export function otherLanguage() {
  const name = language === "zh" ? "en" : "zh";
  return { name, label: NAMES[name] };
}

/** The word for a key, with {names} filled in; an unknown key is shown as it is. */
export function t(key, values = {}) {
  const text = words[key] ?? en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

/** The word for something that the server names, such as a status; the server's own word if there is none. */
export function named(group, word) {
  const key = `${group}.${word}`;
  return words[key] ?? en[key] ?? String(word ?? "").replaceAll("_", " ");
}
