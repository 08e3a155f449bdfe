// Who speaks what: the clients of each dialect, what they use, and what another dialect would cost each of them.

import { get } from "./api.js";
import { h, fill, foreign } from "./dom.js";
import { ago, count } from "./format.js";
import { t } from "./i18n.js";
import { dialectNames, hueOf } from "./server-facts.js";
import { tried } from "./dialog-box.js";

const AGES = ["1d", "7d", "30d", "90d"];
const MARKS = { lost: "✗", degraded: "~" };
const LEVELS = { lost: "dropped", degraded: "partial" };

export class ClientsPage extends HTMLElement {
  setUp() {
    const choice = (label, words) => h("select", { "aria-label": label, onchange: () => this.load() }, words.map(([value, text]) => h("option", { value }, text)));
    this.since = choice(t("clients.since"), AGES.map((one) => [one, t("clients.days", { n: parseInt(one, 10) })]));
    this.since.value = "7d";
    this.target = choice(t("clients.to"), [["", t("clients.nowhere")], ...dialectNames().map((one) => [one, one])]);
    this.rows = h("tbody", {});
    this.append(h("header", { class: "page-head" }, h("h1", { tabindex: "-1" }, t("clients.title")), h("label", {}, t("clients.since"), " ", this.since), h("label", {}, t("clients.to"), " ", this.target)),
      h("p", { class: "quiet-text" }, t("clients.about")),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("clients.title") }, h("table", { class: "clients" },
        h("thead", {}, h("tr", {}, ["dialect", "client", "key", "requests", "last", "features", "cost"].map((one) => h("th", { scope: "col" }, t(`clients.${one}`))))), this.rows)));
    this.load();
    return this;
  }

  load() {
    const query = new URLSearchParams({ since: this.since.value, ...(this.target.value ? { to: this.target.value } : {}) });
    const asked = this.asked = (this.asked ?? 0) + 1;
    return tried(async () => {
      const { clients, to } = await get(`usage?${query}`);
      if (asked === this.asked) fill(this.rows, clients.length ? clients.map((one) => row(one, to)) : h("tr", {}, h("td", { colspan: "7" }, t("clients.none"))));
    });
  }
}

function row({ usage, losses }, to) {
  const listed = (names) => Object.entries(names).map(([name, uses]) => h("li", {}, foreign(name.replaceAll("_", " ")), " ", h("small", {}, count(uses))));
  return h("tr", {}, h("td", { class: `hue-${hueOf(usage.dialect)}` }, h("span", { class: "swatch" }), usage.dialect), h("th", { scope: "row" }, foreign(usage.client)), h("td", {}, foreign(usage.key)),
    h("td", {}, h("details", {}, h("summary", {}, count(usage.requests)), h("ul", {}, listed(usage.endpoints)))), h("td", {}, ago(usage.last_at)), h("td", {}, h("ul", {}, listed(usage.features))),
    h("td", {}, cost(usage, losses, to)));
}

function cost(usage, losses, to) {
  if (!to) return "";
  if (usage.dialect === to) return t("clients.there");
  if (!losses.length) return t("clients.nothing");
  return h("ul", {}, losses.map((one) => h("li", {}, h("span", { class: `mark level-${LEVELS[one.verdict]}` }, MARKS[one.verdict], " ", one.feature.replaceAll("_", " ")), " ", h("small", {}, foreign(one.note)))));
}

customElements.define("clients-page", ClientsPage);
