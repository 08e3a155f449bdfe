// Times, sizes and JSON as people read them.

import { language, t } from "./i18n.js";

export function bytes(count) {
  if (count < 1000) return `${count} B`;
  if (count < 999_500) return `${(count / 1000).toPrecision(3)} kB`;
  return `${(count / 1e6).toPrecision(3)} MB`;
}

export function count(number) {
  return new Intl.NumberFormat(language).format(number);
}

export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** The time of day with milliseconds, for a record. */
export function clock(at) {
  const date = new Date(at * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.`
    + String(date.getMilliseconds()).padStart(3, "0");
}

export function dateTime(at) {
  return new Date(at * 1000).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" });
}

const STEPS = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [86400 * 30, "day", 86400],
  [Infinity, "month", 86400 * 30]];

export function ago(at, now = Date.now() / 1000) {
  const past = Math.max(0, now - at);
  if (past < 5) return t("now");
  const [, unit, length] = STEPS.find(([limit]) => past < limit);
  return new Intl.RelativeTimeFormat(language, { style: "narrow", numeric: "always" })
    .format(-Math.floor(past / length), unit);
}

/** One line of JSON that is no longer than `limit`; the rest is not even written. */
export function preview(value, limit = 160) {
  const text = typeof value === "string" ? JSON.stringify(value.slice(0, limit)) : shortJson(value, limit);
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

function shortJson(value, limit) {
  let left = limit * 2;
  const short = (one, depth) => {
    if (left <= 0 || depth > 6) return "…";
    if (typeof one === "string") {
      const cut = one.slice(0, limit);
      left -= cut.length;
      return cut;
    }
    left -= 4;
    if (Array.isArray(one)) return one.slice(0, 50).map((item) => short(item, depth + 1));
    if (one === null || typeof one !== "object") return one;
    return Object.fromEntries(Object.entries(one).slice(0, 50).map(([key, item]) => {
      left -= key.length;
      return [key, short(item, depth + 1)];
    }));
  };
  return JSON.stringify(short(value, 0)) ?? "";
}

const DULL = /(^|_)(id|ids|uuid|seq|sequence|at|time|timestamp|type|version|kind)$|[a-z](Id|Uuid|At)$/;

/** What a body says, in one line: its values with their names, without the ids, times and numbers that every body has. */
export function gist(value, name = "", limit = 160) {
  const parts = [];
  let left = limit;
  const look = (one, key) => {
    if (left <= 0 || one === null || one === undefined || one === "" || one === name) return;
    if (typeof one === "object") {
      for (const [inner, item] of Object.entries(one)) if (!DULL.test(inner)) look(item, Array.isArray(one) ? key : inner);
      return;
    }
    const text = `${key ? `${key}: ` : ""}${typeof one === "string" ? JSON.stringify(one.slice(0, left)) : one}`;
    left -= text.length + 2;
    parts.push(text);
  };
  look(value, "");
  return parts.length === 1 ? parts[0].replace(/^\w+: (?=")/, "") : parts.join("  ");
}

/** The text of content that is either a bare string or a list of parts. */
export function textOf(content) {
  if (typeof content === "string") return content;
  return (content ?? []).filter((part) => part.kind === "text").map((part) => part.text).join("");
}

export function partsOf(content) {
  return typeof content === "string" ? (content ? [{ kind: "text", text: content }] : []) : content ?? [];
}

export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
