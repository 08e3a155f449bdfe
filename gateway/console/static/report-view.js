// A report of an examination, requirement by requirement, with the transcript of every failure.

import { h, fill, foreign, copyText } from "./dom.js";
import { count, duration } from "./format.js";
import { named, t } from "./i18n.js";
import { say } from "./dialog-box.js";
import "./virtual-list.js";

const OUTCOMES = ["failed", "not testable", "passed", "not applicable"];

export class ReportView extends HTMLElement {
  show(report) {
    this.report = report;
    this.cases = new Map(report.cases.map((one) => [one.name, one]));
    this.outcome = report.requirements.some((one) => one.outcome === "failed") ? "failed" : "";
    this.words = "";
    this.list = document.createElement("virtual-list").setUp({ label: t("report.requirements"), draw: (index) => this.row(this.found[index]), onopen: (index) => this.open(this.found[index]), empty: () => t("report.none") });
    this.detail = h("div", { class: "requirement", role: "region", "aria-label": t("report.requirement"), tabindex: "0" });
    const totals = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, report.requirements.filter((one) => one.outcome === outcome).length]));
    this.filters = h("div", { class: "switch", role: "group", "aria-label": t("report.outcome") }, ["", ...OUTCOMES].map((outcome) => h("button", { type: "button", "data-outcome": outcome, onclick: () => { this.outcome = outcome; this.filter(); } },
      outcome ? `${named("verdict", outcome)} ${count(totals[outcome])}` : `${t("all")} ${count(report.requirements.length)}`)));
    fill(this, h("header", {}, h("span", { class: `pill ${report.verdict}` }, named("verdict", report.verdict)), h("strong", {}, foreign(report.title)), foreign(report.url, { class: "mono" }),
      h("span", { class: "quiet-text" }, `${report.started.slice(0, 19).replace("T", " ")} · ${duration(report.seconds * 1000)}`)),
    h("div", { class: "filters" }, this.filters, h("input", { type: "search", "aria-label": t("report.search"), placeholder: t("report.search"), oninput: (event) => { this.words = event.target.value.toLowerCase(); this.filter(); } })),
    h("div", { class: "report-panes" }, this.list, this.detail));
    this.filter();
    return this;
  }

  filter() {
    this.found = this.report.requirements.filter((one) => (!this.outcome || one.outcome === this.outcome) && (!this.words || `${one.id} ${one.sentence} ${one.section}`.toLowerCase().includes(this.words)));
    for (const button of this.filters.children) button.setAttribute("aria-pressed", String(button.dataset.outcome === this.outcome));
    this.list.setCount(this.found.length);
    fill(this.detail, h("p", { class: "empty" }, t("report.choose")));
  }

  row(one) {
    return h("div", { class: "finding" }, h("span", { class: `dot ${one.outcome.replace(" ", "-")}`, title: named("verdict", one.outcome) }), h("code", {}, one.id), h("span", { class: "sentence" }, foreign(one.sentence)), h("span", { class: "tag" }, one.level));
  }

  open(one) {
    fill(this.detail, h("h3", {}, h("code", {}, one.id), " ", h("span", { class: `pill ${one.outcome.replace(" ", "-")}` }, named("verdict", one.outcome))), h("p", {}, foreign(one.sentence)),
      one.seed ? h("blockquote", { lang: "zh", dir: "auto" }, one.seed) : null, one.english ? h("p", { class: "quiet-text" }, foreign(one.english)) : null, one.not_applicable ? h("p", { class: "quiet-text" }, foreign(one.not_applicable)) : null,
      h("p", { class: "quiet-text" }, foreign(one.source)), one.cases.map((name) => this.cases.get(name)).filter(Boolean).map(caseBox));
  }
}

function caseBox(one) {
  const bad = one.outcome !== "passed";
  return h("details", { open: bad }, h("summary", {}, h("span", { class: `dot ${one.outcome.replace(" ", "-")}` }), foreign(one.name), h("small", {}, duration(one.seconds * 1000))),
    h("p", {}, foreign(one.sentence)), [["expected", one.expected], ["seen", one.seen], ["reason", one.reason]].filter(([, text]) => text).map(([name, text]) => h("p", {}, h("strong", {}, t(`report.${name}`)), " ", foreign(text))),
    one.reproduce?.length ? [h("h4", {}, t("report.reproduce"), " ", h("button", { type: "button", class: "quiet", onclick: async () => { await copyText(asText(one.reproduce)); say(t("copied")); } }, t("copy"))), h("pre", { class: "raw", dir: "auto" }, asText(one.reproduce))] : null,
    one.transcript?.length ? [h("h4", {}, t("report.transcript")), h("pre", { class: "raw", tabindex: "0", dir: "auto" }, one.transcript.join("\n").slice(0, 200_000))] : null);
}

function asText(steps) {
  return (Array.isArray(steps) ? steps : [steps]).map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
}

/** Whether a value is a report that `conform --report json` writes. */
export function isReport(value) {
  return value?.schema === "dragoman-conformance-report" && Array.isArray(value.requirements) && Array.isArray(value.cases);
}

customElements.define("report-view", ReportView);
