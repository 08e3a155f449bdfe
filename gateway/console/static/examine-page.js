// Examine a server: this gateway or another address; or read a report, or have a recording judged.

import { ask, get, post, remove } from "./api.js";
import { EventStream } from "./event-stream.js";
import { h, fill, foreign } from "./dom.js";
import { ago, count, parsed } from "./format.js";
import { named, t } from "./i18n.js";
import { dialectNames, facts } from "./server-facts.js";
import { say, sayError, tried } from "./dialog-box.js";
import { isReport } from "./report-view.js";

export class ExaminePage extends HTMLElement {
  setUp() {
    this.progress = h("div", { class: "progress-box", role: "status" });
    this.past = h("div", { class: "past" });
    this.place = h("div", { class: "report-place" });
    this.picker = h("input", { type: "file", hidden: true, "aria-label": t("examine.open"), onchange: () => { this.read(this.picker.files[0]); this.picker.value = ""; } });
    const drop = h("div", { class: "drop" }, h("p", {}, t("examine.drop")), h("button", { type: "button", onclick: () => this.picker.click() }, t("examine.open")), this.picker);
    this.append(h("header", { class: "page-head" }, h("h1", { tabindex: "-1" }, t("examine.title"))),
      h("section", { class: "examine-top" }, facts.may.examine ? this.form() : h("p", { class: "quiet-text" }, t("examine.not_allowed")), drop), this.progress, this.past, this.place);
    this.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
    this.addEventListener("dragleave", () => drop.classList.remove("over"));
    this.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); this.read(event.dataTransfer.files[0]); });
    if (facts.may.examine) this.list();
    return this;
  }

  disconnectedCallback() {
    this.stream?.stop();
  }

  form() {
    const dialect = this.dialect = h("select", {}, dialectNames().map((one) => h("option", { value: one }, one)));
    const url = h("input", { type: "url", placeholder: t("examine.this_gateway") });
    const key = h("input", { type: "password", autocomplete: "off" });
    const cases = h("input", { type: "text", placeholder: "*", spellcheck: "false" });
    return h("form", { class: "examine-form", onsubmit: (event) => {
      event.preventDefault();
      tried(async () => this.watch((await post("examinations", { dialect: dialect.value, url: url.value || null, ...(key.value ? { key: key.value } : {}), ...(cases.value ? { cases: cases.value } : {}) })).id));
    } }, h("label", {}, t("examine.dialect"), dialect), h("label", {}, t("examine.url"), url), h("label", {}, t("examine.key"), key), h("label", {}, t("examine.cases"), cases), h("button", { class: "primary" }, t("examine.run")));
  }

  async list() {
    const found = await tried(() => get("examinations"));
    if (!found) return;
    const rows = found.examinations;
    fill(this.past, rows.length ? h("table", {}, h("caption", { class: "off-screen" }, t("examine.past")), h("tbody", {}, rows.map((one) => h("tr", {}, h("td", {}, h("span", { class: `pill ${one.status}` }, named("verdict", one.status))), h("td", {}, one.dialect), h("td", { class: "mono" }, foreign(one.url ?? t("examine.this_gateway"))),
      h("td", {}, t("examine.counts", { passed: count(one.passed ?? 0), failed: count(one.failed ?? 0) })), h("td", {}, ago(one.started_at)),
      h("td", {}, h("button", { type: "button", class: "quiet", onclick: () => (one.status === "running" ? this.watch(one.id) : this.open(one.id)) }, t(one.status === "running" ? "examine.watch" : "examine.read"))))))) : null);
    const running = rows.find((one) => one.status === "running");
    if (running && !this.stream) this.watch(running.id);
  }

  /** Follow an examination until it ends, then show its report. */
  watch(id) {
    this.stream?.stop();
    const bar = h("progress", { max: 1, value: 0, "aria-label": t("examine.progress") });
    const text = h("p", { class: "mono" }, t("examine.starting"));
    const tally = { passed: 0, failed: 0 };
    fill(this.progress, bar, text, h("button", { type: "button", onclick: () => tried(() => remove(`examinations/${id}`)) }, t("examine.cancel")));
    this.stream = new EventStream(`examinations/${id}/stream`);
    this.stream.addEventListener("item", ({ detail: { name, data } }) => {
      if (name === "progress") {
        bar.max = data.total || 1;
        bar.value = data.done;
        if (data.outcome in tally) tally[data.outcome] += 1;
        fill(text, `${count(data.done)} / ${count(data.total)} · `, t("examine.counts", tally), " · ", foreign(data.case ?? ""));
      } else if (name === "end") {
        this.stream.stop();
        this.stream = null;
        fill(this.progress);
        say(named("verdict", data.status));
        this.open(id);
        this.list();
      }
    });
    this.stream.start();
  }

  async open(id) {
    const found = await tried(() => get(`examinations/${id}`));
    if (found?.report) this.show(found.report);
    else if (found) fill(this.place, h("pre", { class: "raw", dir: "auto" }, found.output ?? ""));
  }

  show(report) {
    const view = document.createElement("report-view");
    fill(this.place, view);
    view.show(report);
  }

  async read(file) {
    if (!file) return;
    try {
      const value = file.size < 64e6 ? parsed(await file.text()) : undefined;
      if (isReport(value)) {
        this.show(value);
        return;
      }
      // A HAR file does not say which protocol it holds: the one that is chosen above.
      const dialect = value?.log?.entries ? this.dialect?.value : undefined;
      const made = await (await ask("reports", { method: "POST", body: file, query: { name: file.name, dialect } })).json();
      this.show(made.report);
    } catch (error) {
      sayError(error.status === 404 ? new Error(t("examine.not_a_report")) : error);
    }
  }
}

customElements.define("examine-page", ExaminePage);
