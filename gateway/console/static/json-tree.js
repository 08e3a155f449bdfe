// JSON that folds: a part is drawn when it is opened, so that a large value costs nothing until then.

import { h, foreign, isWebAddress, link } from "./dom.js";
import { preview } from "./format.js";
import { t } from "./i18n.js";

const AT_ONCE = 100;
const LONG = 2000;

export class JsonTree extends HTMLElement {
  /** Show a value, opened to this depth. */
  show(value, depth = 2) {
    this.replaceChildren(drawn(value, depth));
    return this;
  }
}

export function jsonTree(value, depth) {
  return document.createElement("json-tree").show(value, depth);
}

function drawn(value, depth) {
  if (value === null || typeof value !== "object") return leaf(value);
  const entries = Array.isArray(value) ? value.map((one, index) => [index, one]) : Object.entries(value);
  if (!entries.length) return h("span", { class: "json-mark" }, Array.isArray(value) ? "[]" : "{}");
  return h("ul", { class: "json" }, rows(entries, depth, 0));
}

function rows(entries, depth, from) {
  const made = entries.slice(from, from + AT_ONCE).map(([name, value]) => h("li", {}, entry(name, value, depth)));
  const rest = entries.length - from - AT_ONCE;
  if (rest > 0) {
    const more = h("li", {}, h("button", {
      type: "button", class: "quiet", onclick: () => more.replaceWith(...rows(entries, depth, from + AT_ONCE)),
    }, t("more_rows", { n: rest })));
    made.push(more);
  }
  return made;
}

function entry(name, value, depth) {
  const label = foreign(name, { class: "json-key" });
  if (value === null || typeof value !== "object" || !Object.keys(value).length) return [label, ": ", drawn(value, 0)];
  const size = Array.isArray(value) ? `[${value.length}]` : `{${Object.keys(value).length}}`;
  const details = h("details", { open: depth > 1, class: "json-fold" },
    h("summary", {}, label, ": ", h("span", { class: "json-mark" }, size), foreign(preview(value, 80), { class: "json-peek" })));
  const open = () => details.open && details.childElementCount === 1 && details.append(drawn(value, depth - 1));
  details.addEventListener("toggle", open);
  open();
  return details;
}

function leaf(value) {
  if (typeof value !== "string") return h("span", { class: `json-${value === null ? "null" : typeof value}` }, String(value));
  if (value.length < LONG && isWebAddress(value)) return h("span", { class: "json-string" }, '"', link(value), '"');
  const text = foreign(JSON.stringify(value.slice(0, LONG)).slice(0, value.length > LONG ? -1 : undefined), { class: "json-string" });
  if (value.length <= LONG) return text;
  const more = h("button", { type: "button", class: "quiet", onclick: () => {
    text.textContent = JSON.stringify(value.slice(0, 200_000));
    more.remove();
  } }, t("more_characters", { n: value.length - LONG }));
  return h("span", {}, text, more);
}

customElements.define("json-tree", JsonTree);
