// What each dialect makes of what happened: the grid of losses, the pairs, each table, and a box that translates.

import { get } from "./api.js";
import { h, fill, foreign } from "./dom.js";
import { named, t } from "./i18n.js";
import { address } from "./route.js";
import { hueOf } from "./server-facts.js";
import { tableOf } from "./frame-detail.js";
import { openDialog, sayError } from "./dialog-box.js";
import "./translate-box.js";

const MARKS = { full: "✓", partial: "~", fallback: "~", dropped: "✗", rejected: "✗" };

export class MappingsPage extends HTMLElement {
  async setUp({ dialect, line }) {
    try {
      this.losses = await get("losses");
      this.dialects = this.losses.dialects.map((one) => one.name ?? one);
      const tabs = h("nav", { class: "tabs", "aria-label": t("mappings.title") }, [[null, t("mappings.losses")], ["translate", t("mappings.translate")],
        ...this.dialects.map((one) => [one, one])].map(([name, label]) => h("a", { href: address(name ? ["mappings", name] : ["mappings"]),
        class: this.dialects.includes(name) ? `hue-${hueOf(name)}` : null, "aria-current": (name ?? undefined) === dialect ? "page" : null },
      this.dialects.includes(name) ? h("span", { class: "swatch" }) : null, label)));
      this.append(h("header", { class: "page-head" }, h("h1", { tabindex: "-1" }, t("mappings.title")), tabs));
      if (dialect === "translate") this.append(document.createElement("translate-box").setUp());
      else if (dialect) await this.drawTable(dialect, line);
      else this.drawLosses();
    } catch (error) {
      sayError(error);
    }
    return this;
  }

  drawLosses() {
    const { features, cells, pairs } = this.losses;
    this.append(h("div", { class: "loss-pages" }, h("section", {}, h("h2", {}, t("mappings.grid")), h("p", { class: "quiet-text" }, t("mappings.grid_about")),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("mappings.grid") }, h("table", { class: "losses" },
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("mappings.feature")), this.dialects.map((one) => h("th", { scope: "col", class: `hue-${hueOf(one)}` }, h("span", { class: "swatch" }), one)))),
        h("tbody", {}, features.map((feature) => h("tr", {}, h("th", { scope: "row" }, (feature.name ?? feature).replaceAll("_", " "), feature.meaning ? h("small", {}, feature.meaning) : null),
          this.dialects.map((one) => this.cell(one, feature.name ?? feature, cells[one][feature.name ?? feature]))))))),
    h("p", { class: "legend" }, ["full", "partial", "dropped"].map((level) => h("span", { class: `mark level-${level}` }, MARKS[level], " ", named("level", level))))),
    h("section", {}, h("h2", {}, t("mappings.pairs")), h("p", { class: "quiet-text" }, t("mappings.pairs_about")), this.pairTable(pairs))));
  }

  cell(dialect, feature, { level, mark, note }) {
    const text = `${named("level", level)}${note ? `: ${note}` : ""}`;
    return h("td", {}, h("button", { type: "button", class: `mark level-${level}`, title: text, "aria-label": `${dialect}, ${feature}: ${text}`,
      onclick: () => openDialog(`${dialect}: ${feature.replaceAll("_", " ")}`, [h("p", {}, h("span", { class: `mark level-${level}` }, mark ?? MARKS[level], " ", named("level", level))), note ? h("p", {}, note) : h("p", { class: "quiet-text" }, t("mappings.no_note"))]) },
    MARKS[level] ?? mark, note ? h("i", { class: "has-note" }) : null));
  }

  pairTable(pairs) {
    const found = new Map(pairs.map((one) => [`${one.agent}/${one.client}`, one]));
    const agents = [...new Set(pairs.map((one) => one.agent))];
    const clients = [...new Set(pairs.map((one) => one.client))];
    const listed = (label, list) => (list?.length ? [h("h3", {}, label), h("ul", {}, list.map((one) => h("li", {}, foreign(typeof one === "string" ? one.replaceAll("_", " ") : `${one.feature}: ${one.note ?? ""}`))))] : null);
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("mappings.pairs") }, h("table", { class: "losses pairs" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("mappings.agent_client")), clients.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, agents.map((agent) => h("tr", {}, h("th", { scope: "row" }, agent), clients.map((client) => {
        const pair = found.get(`${agent}/${client}`) ?? { lost: [], degraded: [] };
        return h("td", {}, h("button", { type: "button", class: "mark", "aria-label": `✗ ${pair.lost.length} ~ ${pair.degraded.length}, ` + t("mappings.pair", { agent, client, lost: pair.lost.length, degraded: pair.degraded.length }),
          onclick: () => openDialog(`${agent} → ${client}`, [listed(t("mappings.lost"), pair.lost), listed(t("mappings.degraded"), pair.degraded)]) },
        h("span", { class: "level-dropped" }, `✗ ${pair.lost.length}`), " ", h("span", { class: "level-partial" }, `~ ${pair.degraded.length}`)));
      }))))));
  }

  async drawTable(dialect, line) {
    const table = await tableOf(dialect);
    const rows = h("tbody", {});
    const box = h("input", { type: "search", placeholder: t("mappings.search"), "aria-label": t("mappings.search"), oninput: () => draw() });
    const draw = () => fill(rows, table.rows.filter((row) => JSON.stringify(row).toLowerCase().includes(box.value.toLowerCase())).map((row) => h("tr", {},
      h("th", { scope: "row" }, h("code", {}, row.cue)),
      h("td", {}, row.frames?.length ? row.frames.map((one) => h("pre", { class: "raw" }, typeof one.out === "string" ? one.out : JSON.stringify(one.out ?? one, null, 1))) : h("span", { class: "quiet-text" }, row.note || t("wire.silent"))),
      h("td", {}, row.line ? h("button", { type: "button", class: "quiet", onclick: () => this.showLine(row.line) }, row.line) : null))));
    draw();
    this.source = h("pre", { class: "source", tabindex: "0", "aria-label": table.file }, table.text.split("\n").map((text, index) => h("span", { id: `line-${index + 1}` }, h("span", { class: "line-number" }, String(index + 1).padStart(4)), ` ${text}\n`)));
    this.append(h("section", { class: "table-page" },
      h("div", { class: "table-rows" }, h("header", {}, h("h2", {}, t("mappings.becomes", { dialect })), box),
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("mappings.becomes", { dialect }) }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("mappings.cue")), h("th", { scope: "col" }, t("mappings.out")), h("th", { scope: "col" }, t("mappings.line")))), rows))),
      h("div", { class: "table-source" }, h("h2", { class: "mono" }, table.file), this.source)));
    if (line) requestAnimationFrame(() => this.showLine(Number(line)));
  }

  showLine(line) {
    this.source.querySelector(".chosen")?.classList.remove("chosen");
    const found = this.source.querySelector(`#line-${line}`);
    found?.classList.add("chosen");
    // Only the text moves, not the page.
    if (found) this.source.scrollTop = found.offsetTop - this.source.offsetTop - this.source.clientHeight / 3;
  }
}

customElements.define("mappings-page", MappingsPage);
