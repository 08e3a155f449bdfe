// One record in every column: its frames raw and pretty, their sizes and times, and the row of the table that made each.

import { get } from "./api.js";
import { h, fill, iconButton, copyText, foreign } from "./dom.js";
import { bytes, clock, duration } from "./format.js";
import { t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { address } from "./route.js";
import { bodyOf, framesOf, silenceOf } from "./session-log.js";
import { silenceText } from "./frame-grid.js";
import { say, tried } from "./dialog-box.js";

const tables = new Map();

export function tableOf(dialect) {
  if (!tables.has(dialect)) {
    const found = get(`tables/${encodeURIComponent(dialect)}`);
    found.catch(() => tables.delete(dialect));
    tables.set(dialect, found);
  }
  return tables.get(dialect);
}

export class FrameDetail extends HTMLElement {
  /** Events: `close`, `curl` (detail: seq). */
  setUp({ log, hues, shared }) {
    Object.assign(this, { log, hues, shared, pretty: localStorage.getItem("dragoman.raw") !== "1" });
    this.hidden = true;
    this.setAttribute("role", "region");
    this.setAttribute("aria-label", t("detail.label"));
    this.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.dispatchEvent(new Event("close"));
    });
    return this;
  }

  show({ seq, column, index }) {
    Object.assign(this, { seq, column, index });
    const band = this.log.bands[seq - 1];
    this.hidden = !band;
    if (!band) return;
    const tabs = ["records", ...this.log.columns];
    fill(this, h("header", {},
      h("strong", {}, t("detail.record", { seq })), band.at ? h("span", { class: "quiet-text" }, clock(band.at)) : null,
      h("div", { class: "tabs", role: "tablist", "aria-label": t("wire.columns"), onkeydown: (event) => this.onTabKey(event, tabs) },
        tabs.map((one) => h("button", { type: "button", role: "tab", "aria-selected": String(one === column), tabindex: one === column ? 0 : -1,
          class: `hue-${this.hues.get(one) ?? 0}`, onclick: () => this.show({ seq, column: one, index: 0 }) }, one === "records" ? t("wire.canonical") : one))),
      h("span", { class: "spring" }),
      h("div", { class: "switch", role: "group", "aria-label": t("detail.look") },
        [true, false].map((pretty) => h("button", { type: "button", "aria-pressed": String(this.pretty === pretty), onclick: () => this.look(pretty) },
          t(pretty ? "detail.pretty" : "detail.raw")))),
      this.shared ? null : h("button", { type: "button", class: "quiet", onclick: () => this.dispatchEvent(new CustomEvent("curl", { detail: seq })) }, t("detail.curl")),
      iconButton("close", t("close"), () => this.dispatchEvent(new Event("close")))),
    h("div", { class: "detail-body", role: "tabpanel", tabindex: "0", "aria-label": column }, column === "records" ? this.record(band) : this.frames(band, column)));
  }

  look(pretty) {
    this.pretty = pretty;
    localStorage.setItem("dragoman.raw", pretty ? "0" : "1");
    this.show(this);
    this.querySelector(`.switch button:nth-child(${pretty ? 1 : 2})`).focus();
  }

  onTabKey(event, tabs) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    this.show({ seq: this.seq, column: tabs[(tabs.indexOf(this.column) + by + tabs.length) % tabs.length], index: 0 });
    this.querySelector("[role=tab][aria-selected=true]").focus();
  }

  record({ record }) {
    if (!record) return h("p", {}, "…");
    const text = JSON.stringify(record.event);
    const ids = [record.turn_id, record.scope_id !== "root" ? record.scope_id : null].filter(Boolean);
    return h("section", { class: "frame-box" }, h("p", { class: "facts" }, h("code", {}, record.name, record.variant ? `.${record.variant}` : ""),
      h("span", {}, bytes(new Blob([text]).size)), ids.map((id) => foreign(id, { class: "mono" })),
      record.feature ? h("span", { class: "tag" }, record.feature) : null, this.copier(text)),
    this.pretty ? jsonTree(record.event, 3) : h("pre", { class: "raw", dir: "auto" }, text.slice(0, 200_000)));
  }

  copier(text) {
    return iconButton("copy", t("copy"), async () => { await copyText(text); say(t("copied")); });
  }

  frames(band, column) {
    const frames = framesOf(band, column);
    if (!frames.length) {
      const silence = silenceOf(band, column);
      if (!silence) return h("p", {}, "…");
      return h("section", { class: "frame-box" }, h("p", {}, silenceText(silence)),
        h("p", { class: "facts" }, silence.level ? h("span", { class: `tag level-${silence.level}` }, silence.level) : null, silence.feature ? h("span", { class: "tag" }, silence.feature) : null,
          this.rowLink(column, silence)), this.rowBox(column, silence));
    }
    return frames.map((one, index) => {
      const body = bodyOf(one.text);
      const box = h("section", { class: `frame-box${index === this.index && frames.length > 1 ? " chosen" : ""}` }, h("p", { class: "facts" },
        h("code", {}, one.name), h("span", {}, bytes(one.size)),
        one.due ? h("span", {}, t("wire.due"), ` +${duration(Math.max(0, one.due - one.at) * 1000)}`) : null,
        one.cursor !== null && one.cursor !== undefined ? h("span", { class: "mono", title: t("detail.cursor") }, "↻ ", foreign(String(one.cursor))) : null,
        one.from?.length ? h("span", {}, t("detail.from", { seqs: one.from.join(", ") })) : null,
        this.rowLink(column, one), this.copier(one.text)),
      this.pretty && body !== undefined ? jsonTree(body, 4) : h("pre", { class: "raw", dir: "auto" }, one.text.slice(0, 200_000)), this.rowBox(column, one));
      return box;
    });
  }

  /** Which row of the table made a frame: shown in place, one click away. */
  rowLink(dialect, { cue, line }) {
    if (!line) return cue ? h("code", {}, cue) : null;
    const button = h("button", { type: "button", class: "quiet table-row", "aria-expanded": "false", onclick: () => tried(async () => {
      const box = button.closest(".frame-box").querySelector(".table-lines");
      box.hidden = !box.hidden;
      button.setAttribute("aria-expanded", String(!box.hidden));
      if (box.hidden) return;
      const table = await tableOf(dialect);
      const lines = table.text.split("\n");
      const from = Math.max(0, line - 3);
      fill(box, h("pre", {}, lines.slice(from, line + 4).map((text, index) => h(from + index + 1 === line ? "mark" : "span", {},
        h("span", { class: "line-number" }, String(from + index + 1).padStart(4)), ` ${text}\n`))),
      h("a", { href: address(["mappings", dialect], { line }) }, t("detail.open_table", { file: table.file, line })));
    }) }, t("detail.row", { cue: cue ?? "", dialect, line }));
    return button;
  }

  rowBox(dialect, { line }) {
    return line ? h("div", { class: "table-lines", hidden: true }) : null;
  }
}

customElements.define("frame-detail", FrameDetail);
