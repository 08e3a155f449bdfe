// The server: its agents, the addresses of its dialects, its figures as they change, keys, limits and warnings.

import { get, post, remove } from "./api.js";
import { EventStream } from "./event-stream.js";
import { h, fill, foreign, copyText, iconButton } from "./dom.js";
import { ago, bytes, count, dateTime } from "./format.js";
import { t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { dialectNames, facts, hueOf, readFacts } from "./server-facts.js";
import { asked, confirmed, openDialog, say, tried } from "./dialog-box.js";
import "./line-chart.js";

export class ServerPage extends HTMLElement {
  async setUp() {
    await tried(readFacts);
    this.append(h("header", { class: "page-head" }, h("h1", { tabindex: "-1" }, t("server.title")), h("span", { class: "quiet-text" }, `Dragoman ${facts.version}`,
      facts.started_at ? ` · ${t("server.since", { time: dateTime(facts.started_at) })}` : ""),
      h("span", { class: "quiet-text" }, h("a", { href: "../openapi.json" }, "OpenAPI"), " · ", h("a", { href: "../asyncapi.json" }, "AsyncAPI"))));
    if (facts.may.figures) this.append(this.charts());
    this.append(h("div", { class: "cards" }, this.dialects(), this.agents(), facts.limits ? this.limits() : null));
    if (facts.may.keys) this.append(this.keys());
    if (facts.may.warnings) this.append(this.warnings());
    return this;
  }

  disconnectedCallback() {
    this.stream?.stop();
  }

  charts() {
    const chart = (key, more = {}) => document.createElement("line-chart").setUp({ title: t(`figures.${key}`), ...more });
    const lines = dialectNames().map((name) => ({ name, hue: hueOf(name) }));
    const made = { turns: chart("turns"), streams: chart("streams"), events: chart("events", { lines }), lag: chart("lag", { unit: " ms" }), losses: chart("losses", { lines }), memory: chart("memory", { unit: " MB" }) };
    this.stream = new EventStream("figures/stream");
    let before = null;
    this.stream.addEventListener("item", ({ detail: { data } }) => {
      draw(made, data, before);
      before = data;
    });
    this.stream.start();
    return h("section", { class: "charts", "aria-label": t("server.figures") }, Object.values(made));
  }

  dialects() {
    return h("section", {}, h("h2", {}, t("server.dialects")), facts.dialects.map((one) => h("article", { class: `hue-${hueOf(one.name)}` },
      h("h3", {}, h("span", { class: "swatch" }), one.name, one.spec ? h("small", {}, one.spec) : null, h("small", {}, one.framing)), h("p", { class: "copy-line" }, h("code", {}, one.url), copier(one.url)),
      (one.examples ?? []).map((text) => h("p", { class: "copy-line" }, h("code", {}, text), copier(text))))));
  }

  agents() {
    return h("section", {}, h("h2", {}, t("server.agents")), facts.agents.map((one) => h("article", {},
      h("h3", {}, foreign(one.title || one.name), h("small", {}, foreign(one.name)), one.is_default ? h("span", { class: "tag" }, t("server.default")) : null, one.backend ? h("small", {}, one.backend) : null),
      one.description ? h("p", {}, foreign(one.description)) : null, one.tools?.length ? h("details", {}, h("summary", {}, t("server.tools", { n: one.tools.length })), h("ul", { class: "tools" }, one.tools.map((tool) => tool.spec ? { ...tool.spec, ...tool } : tool).map((tool) => h("li", {}, h("code", {}, foreign(tool.name)), " ", foreign(tool.description ?? ""), tool.permission ? h("span", { class: "tag" }, tool.permission) : null,
        tool.parameters && Object.keys(tool.parameters).length ? jsonTree({ parameters: tool.parameters }, 0) : null)))) : null)));
  }

  limits() {
    const rows = Object.entries(facts.limits).filter(([, value]) => typeof value !== "object");
    return h("section", {}, h("h2", {}, t("server.limits")), h("dl", { class: "limits" }, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, name.endsWith("_bytes") ? bytes(value) : typeof value === "number" ? count(value) : String(value))])));
  }

  keys() {
    const rows = h("tbody", {});
    const load = () => tried(async () => fill(rows, (await get("keys")).keys.map((one) => h("tr", {}, h("th", { scope: "row" }, foreign(one.name)), h("td", {}, foreign(one.user ?? "")), h("td", {}, one.created_at ? dateTime(one.created_at) : ""),
      h("td", {}, one.last_used_at ? `${ago(one.last_used_at)} ${one.last_used_from ?? ""}` : t("keys.never")), h("td", {}, h("button", { type: "button", class: "danger", onclick: async () => {
        if (await confirmed(t("keys.revoke"), t("keys.revoke_sure", { name: one.name }), t("keys.revoke"))) { await tried(() => remove(`keys/${encodeURIComponent(one.name)}`)); load(); }
      } }, t("keys.revoke")))))));
    load();
    return h("section", {}, h("h2", {}, t("keys.title")), h("table", {}, h("thead", {}, h("tr", {}, ["name", "user", "created", "used", ""].map((one) => h("th", { scope: "col" }, one ? t(`keys.${one}`) : h("span", { class: "off-screen" }, t("keys.revoke")))))), rows),
      h("p", {}, h("button", { type: "button", onclick: async () => {
        const name = await asked(t("keys.add"), t("keys.name"));
        const made = name ? await tried(() => post("keys", { name })) : null;
        if (!made) return;
        openDialog(t("keys.add"), [h("p", {}, t("keys.once")), h("p", { class: "copy-line" }, h("code", {}, made.key), copier(made.key))]);
        load();
      } }, t("keys.add"))));
  }

  warnings() {
    const list = h("ol", { class: "warnings" });
    const load = () => tried(async () => {
      const { warnings } = await get("warnings");
      fill(list, warnings.length ? warnings.map((one) => h("li", {}, h("details", {}, h("summary", {}, h("span", { class: `dot ${one.level}` }), h("time", {}, dateTime(one.at)), h("code", {}, one.event), h("small", {}, one.logger)), jsonTree(one.fields ?? {}, 2)))) : h("li", { class: "quiet-text" }, t("warnings.none")));
    });
    load();
    return h("section", {}, h("h2", {}, t("warnings.title"), " ", h("button", { type: "button", class: "quiet", onclick: load }, t("reload"))), list);
  }
}

function copier(text) {
  return iconButton("copy", t("copy"), async () => { await copyText(text); say(t("copied")); });
}

/** Counters only grow: what is drawn is how much they grew in a second. */
function draw(made, now, before) {
  const seconds = before ? Math.max(0.1, now.at - before.at) : 1;
  const grown = (one, other) => (before ? Math.max(0, (one ?? 0) - (other ?? 0)) / seconds : 0);
  const lost = (figures, name) => (figures?.losses ?? []).filter((one) => one.target === name).reduce((sum, one) => sum + one.count, 0);
  made.turns.add([now.turns_running]);
  made.streams.add([now.streams]);
  made.events.add(dialectNames().map((name) => grown(now.events?.[name], before?.events?.[name])));
  made.losses.add(dialectNames().map((name) => grown(lost(now, name), lost(before, name))));
  const many = (now.lag?.count ?? 0) - (before?.lag?.count ?? 0);
  made.lag.add([before && many > 0 ? (((now.lag.sum ?? 0) - (before.lag.sum ?? 0)) / many) * 1000 : 0]);
  made.memory.add([(now.memory_bytes ?? 0) / 1e6]);
}

customElements.define("server-page", ServerPage);
