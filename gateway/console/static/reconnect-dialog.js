// "Reconnect here": the request that a client of each dialect sends after this record, and what it gets.

import { get } from "./api.js";
import { h, fill, copyText, foreign } from "./dom.js";
import { bytes } from "./format.js";
import { t } from "./i18n.js";
import { openDialog, say, sayError } from "./dialog-box.js";

export async function openReconnect(session, seq, hues) {
  const body = h("div", { class: "reconnect" }, h("p", {}, t("loading")));
  openDialog(t("reconnect.title", { seq }), body, { wide: true });
  const path = `sessions/${encodeURIComponent(session)}`;
  try {
    const [found, exchange] = await Promise.all([get(`${path}/reconnect`, { seq }), get(`${path}/exchange`, { seq }).catch(() => ({ requests: [] }))]);
    fill(body, exchange.requests?.length ? [h("h3", {}, t("reconnect.exchange")), h("p", { class: "quiet-text" }, t("reconnect.exchange_about")),
      [...new Set(exchange.requests.map((one) => one.dialect))].map((dialect) => h("section", { class: `hue-${hues.get(dialect) ?? 0}` },
        h("h4", {}, h("span", { class: "swatch" }), dialect), exchange.requests.filter((one) => one.dialect === dialect).map(request)))] : null,
    h("h3", {}, t("reconnect.resume")), h("p", { class: "quiet-text" }, t("reconnect.about")), found.dialects.map((one) => section(one, hues)));
  } catch (error) {
    fill(body, h("p", { class: "error-text" }, error.message));
    sayError(error);
  }
}

function section({ dialect, cursor, requests, note, gets }, hues) {
  const frames = (gets?.items ?? []).flatMap((item) => item.frames.map((one) => ({ ...one, seq: item.seq })));
  return h("section", { class: `hue-${hues.get(dialect) ?? 0}` },
    h("h4", {}, h("span", { class: "swatch" }), dialect, cursor !== null && cursor !== undefined ? h("code", {}, "↻ ", foreign(String(cursor))) : null),
    note ? h("p", { class: "quiet-text" }, note) : null, requests.map(request),
    h("details", {}, h("summary", {}, t("reconnect.gets", { n: frames.length + (gets?.more ? "+" : "") })),
      h("ol", { class: "gets" }, frames.map((one) => h("li", {}, h("details", {}, h("summary", {}, h("span", { class: "seq" }, one.seq), h("code", {}, one.name), h("small", {}, bytes(one.size))),
        h("pre", { class: "raw", dir: "auto" }, one.text.slice(0, 20_000))))))));
}

function request({ title, text }) {
  const copy = h("button", { type: "button", class: "quiet", onclick: async () => { await copyText(text); say(t("copied")); } }, t("copy"));
  return h("figure", {}, h("figcaption", {}, title, copy), h("pre", { class: "raw", tabindex: "0" }, text));
}
