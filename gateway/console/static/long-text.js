// Text of any length: what is streaming grows in place, what is long is shown in parts, and addresses become links.

import { h, link, fill } from "./dom.js";
import { bytes } from "./format.js";
import { t } from "./i18n.js";

const PART = 20_000;
const ADDRESS = /https?:\/\/[^\s<>"'`\u0000-\u0020\u202a-\u202e\u2066-\u2069）】」]+[^\s<>"'`.,;:!?)\]}\u202a-\u202e\u2066-\u2069）】」。，]/g;

export class LongText extends HTMLElement {
  constructor() {
    super();
    this.limit = PART;
    this.text = "";
  }

  connectedCallback() {
    this.dir = "auto";
  }

  /** Show a text; `done` says that it will not grow, and only then are its addresses made links. */
  show(text, done = true) {
    if (text === this.text && done === this.done) return this;
    const grows = !done && !this.done && text.startsWith(this.text) && this.node && text.length <= this.limit;
    if (grows) this.node.appendData(text.slice(this.text.length));
    this.text = text;
    this.done = done;
    if (!grows) this.draw();
    return this;
  }

  draw() {
    const seen = this.text.slice(0, this.limit);
    this.node = null;
    if (this.done) fill(this, withLinks(seen));
    else fill(this, (this.node = document.createTextNode(seen)));
    if (this.text.length <= this.limit) return;
    this.append(h("button", { type: "button", class: "quiet more", onclick: () => {
      this.limit += PART * 10;
      this.draw();
    } }, t("more_text", { size: bytes(this.text.length - this.limit) })));
  }
}

export function longText(text, done = true) {
  return document.createElement("long-text").show(text, done);
}

function withLinks(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(ADDRESS)) {
    parts.push(text.slice(from, found.index), link(found[0]));
    from = found.index + found[0].length;
  }
  return [...parts, text.slice(from)];
}

customElements.define("long-text", LongText);
