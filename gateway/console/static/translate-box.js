// A canonical event, or a frame of a dialect, and at once its translation into every dialect.

import { post } from "./api.js";
import { h, fill, foreign } from "./dom.js";
import { bytes, gist, parsed } from "./format.js";
import { t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { bodyOf } from "./session-log.js";
import { silenceText } from "./frame-grid.js";
import { dialectNames, hueOf } from "./server-facts.js";

const EXAMPLES = [
  { type: "block.ended", block_id: "b1", message_id: "m1", kind: "text", text: "Hello" },
  { type: "block.ended", block_id: "b2", message_id: "m1", kind: "tool_use", call: { call_id: "call_1", name: "calc", input: { expression: "6*7" } } },
  { type: "input.requested", request_id: "ask_1", ask: { kind: "question", questions: [{ question: "Which one?", options: [{ label: "This" }, { label: "That" }] }] } },
  { type: "scope.opened", parent: "root", agent: "helper", title: "A sub-agent" },
  { type: "fault.raised", fault: { code: "backend", message: "The model did not answer." } },
];

export class TranslateBox extends HTMLElement {
  setUp() {
    this.source = h("select", { "aria-label": t("translate.from"), onchange: () => this.translate() }, h("option", { value: "" }, t("wire.canonical")),
      dialectNames().map((one) => h("option", { value: one }, one)));
    this.box = h("textarea", { rows: 8, class: "mono", spellcheck: "false", "aria-label": t("translate.input"), oninput: () => this.later() });
    this.examples = h("select", { "aria-label": t("translate.examples"), onchange: () => this.example(Number(this.examples.value)) },
      EXAMPLES.map((one, index) => h("option", { value: index }, one.type)));
    this.trouble = h("p", { class: "error-text", role: "status" });
    this.result = h("div", { class: "translated" });
    this.append(h("div", { class: "translate-in" }, h("p", { class: "quiet-text" }, t("translate.about")), h("div", { class: "filters" }, this.source, this.examples), this.box, this.trouble), this.result);
    this.example(0);
    return this;
  }

  example(index) {
    this.source.value = "";
    this.box.value = JSON.stringify(EXAMPLES[index], null, 2);
    this.translate();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.translate(), 250);
  }

  async translate() {
    const text = this.box.value.trim();
    const run = this.run = (this.run ?? 0) + 1;
    const value = parsed(text);
    const body = this.source.value ? { dialect: this.source.value, frame: text } : Array.isArray(value) ? { events: value } : { event: value };
    if (!text || (!this.source.value && value === undefined)) {
      this.trouble.textContent = text ? t("form.not_json", { name: t("translate.input") }) : "";
      return;
    }
    try {
      const found = await post("translate", body);
      if (run !== this.run) return;
      this.trouble.textContent = (found.problems ?? []).join(" · ");
      const added = new Set(found.added ?? []);
      fill(this.result, Object.entries({ records: found.records, ...found.columns }).map(([name, items]) => column(name, items, added)));
    } catch (error) {
      if (run === this.run) this.trouble.textContent = error.message;
    }
  }
}

/** What was added around the event, so that it can be said at all, is folded. */
function column(name, items, added) {
  return h("section", { class: `hue-${hueOf(name)}` }, h("h2", {}, h("span", { class: "swatch" }), name === "records" ? t("wire.canonical") : name),
    items.map((item) => {
      const plain = !added.has(item.seq);
      const said = item.frames ? item.frames.map((one) => frameBox(one, plain)) : [eventBox(item, plain)];
      if (!said.length && !plain) return null;
      return h("div", { class: plain ? null : "added", title: plain ? null : t("translate.added") }, said.length ? said : h("p", { class: "silent" }, "∅ ", item.silence ? silenceText(item.silence) : t("wire.silent")));
    }));
}

function eventBox({ event, name, variant }, open) {
  return h("details", { open }, h("summary", {}, h("code", {}, variant ? `${name}.${variant}` : name), " ", foreign(gist(event, name, 60), { class: "peek" })), jsonTree(event, 3));
}

function frameBox({ name, text, size }, open) {
  const body = bodyOf(text);
  return h("details", { open }, h("summary", {}, h("code", {}, name), " ", h("small", {}, bytes(size))), body === undefined ? h("pre", { class: "raw", dir: "auto" }, text) : jsonTree(body, 4));
}

customElements.define("translate-box", TranslateBox);
