// The sessions of the server: newest first, with what happens in each, searched and filtered by the server.

import { get } from "./api.js";
import { EventStream } from "./event-stream.js";
import { h, fill, foreign, icon, iconButton } from "./dom.js";
import { ago, count } from "./format.js";
import { named, t } from "./i18n.js";
import { sayError } from "./dialog-box.js";
import { hueOf } from "./server-facts.js";
import "./virtual-list.js";

const PAGE = 200;
const STATUSES = ["running", "waiting", "failed", "idle", "closed"];

export class SessionList extends HTMLElement {
  /** Events: `open` (detail: id), `new`, `import`. */
  setUp({ agents }) {
    this.rows = [];
    this.byId = new Map();
    this.next = null;
    this.filter = {};
    this.box = h("input", { type: "search", "aria-label": t("sessions.search"), placeholder: t("sessions.search"), oninput: () => this.later() });
    this.status = h("select", { "aria-label": t("sessions.status"), onchange: () => this.reload() },
      h("option", { value: "" }, t("sessions.any_status")), STATUSES.map((one) => h("option", { value: one }, named("status", one))));
    this.agent = h("select", { "aria-label": t("sessions.agent"), onchange: () => this.reload() },
      h("option", { value: "" }, t("sessions.any_agent")), agents.map((one) => h("option", { value: one.name }, one.title || one.name)));
    this.list = document.createElement("virtual-list").setUp({
      label: t("sessions.label"), draw: (index) => this.draw(index), onopen: (index) => this.open(this.rows[index]),
      onend: () => this.more(), empty: () => (this.loading ? t("loading") : t("sessions.none")),
    });
    this.tally = h("span", { class: "quiet-text", role: "status" });
    this.append(
      h("div", { class: "list-head" }, (this.heading = h("h2", {}, t("sessions.label"))), this.tally, h("span", { class: "spring" }),
        iconButton("upload", t("sessions.import"), () => this.dispatchEvent(new Event("import"))),
        h("button", { type: "button", class: "primary new-session", onclick: () => this.dispatchEvent(new Event("new")) }, icon("plus"), t("sessions.new"))),
      h("div", { class: "filters", role: "search" }, this.box, this.status, this.agent), this.list);
    this.reload();
    this.stream = new EventStream("sessions/stream");
    this.stream.addEventListener("item", ({ detail }) => this.heard(detail));
    this.stream.start();
    this.clock = setInterval(() => this.list.redraw(), 30_000);
    return this;
  }

  disconnectedCallback() {
    this.stream?.stop();
    clearInterval(this.clock);
  }

  /** On a small screen the list is the page itself, elsewhere it is beside one. */
  setMain(alone) {
    this.setAttribute("role", alone ? "main" : "complementary");
    this.setAttribute("aria-label", t("sessions.label"));
    this.heading.setAttribute("aria-level", alone ? 1 : 2);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.reload(), 200);
  }

  get wanted() {
    return { q: this.box.value.trim(), status: this.status.value, agent: this.agent.value };
  }

  get filtered() {
    return Object.values(this.wanted).some(Boolean);
  }

  async reload() {
    this.abort?.abort();
    this.abort = new AbortController();
    this.rows = [];
    this.byId.clear();
    this.next = "";
    this.loading = false;
    this.list.scrollTop = 0;
    await this.more();
  }

  /** Read on where the list ends; a page of a search may be empty and still have a next one. */
  async more() {
    if (this.loading || this.next === null || !this.abort) return;
    const { signal } = this.abort;
    this.loading = true;
    try {
      for (let found = 0; this.next !== null && found < PAGE / 2;) {
        const page = await get("sessions", { limit: PAGE, cursor: this.next, ...this.wanted }, signal);
        if (signal.aborted) return;
        this.next = page.next;
        found += page.sessions.length;
        for (const row of page.sessions) this.add(row);
        this.update();
      }
    } catch (error) {
      if (!signal.aborted) sayError(error);
    } finally {
      if (!signal.aborted) {
        this.loading = false;
        this.update();
      }
    }
  }

  add(row) {
    if (this.byId.has(row.session_id)) return;
    this.byId.set(row.session_id, row);
    this.rows.push(row);
  }

  heard({ name, data }) {
    if (name === "snapshot") for (const row of data.sessions) this.change(row);
    else if (name === "session") this.change(data);
    else if (name === "removed") this.drop(data.session_id);
    this.sort();
    this.update();
  }

  change(row) {
    const known = this.byId.get(row.session_id);
    if (known) Object.assign(known, row);
    else if (!this.filtered) this.add(row);
    this.dispatchEvent(new CustomEvent("row", { detail: row }));
  }

  /** What changed last is first. Whoever reads further down, or moves by keys, keeps the row before their eyes. */
  sort() {
    if (this.filtered) return;
    const held = this.rows[this.list.active];
    const top = this.rows[0];
    this.rows.sort((one, other) => other.updated_at - one.updated_at);
    if (held) this.list.active = this.rows.indexOf(held);
    if (this.list.scrollTop > 0 && top !== this.rows[0]) this.list.scrollTop += this.list.measure();
  }

  drop(id) {
    if (!this.byId.delete(id)) return;
    this.rows = this.rows.filter((row) => row.session_id !== id);
  }

  update() {
    this.tally.textContent = count(this.rows.length) + (this.next ? "+" : "");
    this.list.setCount(this.rows.length);
  }

  select(id) {
    this.chosen = id;
    const index = this.rows.findIndex((row) => row.session_id === id);
    if (index >= 0) this.list.active = index;
    this.list.redraw();
  }

  open(row) {
    if (row) this.dispatchEvent(new CustomEvent("open", { detail: row.session_id }));
  }

  draw(index) {
    const row = this.rows[index];
    const chosen = row.session_id === this.chosen;
    return h("div", { class: `session ${chosen ? "chosen" : ""}`, id: `session-${row.session_id}`, "aria-selected": String(chosen) },
      h("span", { class: `dot ${row.status}`, title: named("status", row.status) }),
      h("div", { class: "session-title" }, foreign(titleOf(row)), h("span", { class: "off-screen" }, `, ${named("status", row.status)}`)),
      h("time", {}, ago(row.updated_at)),
      h("div", { class: "session-about" }, foreign(row.agent), row.asks ? h("span", { class: "tag warn" }, t("sessions.asks", { n: row.asks })) : null,
        row.turns ? h("span", {}, t(row.turns === 1 ? "sessions.turn" : "sessions.turns", { n: count(row.turns) })) : null),
      h("div", { class: "watchers" }, (row.watching ?? []).map((dialect) => h("span", { class: `watcher hue-${hueOf(dialect)}`, title: t("sessions.watching", { dialect }) }, dialect))));
  }
}

export function titleOf(row) {
  return row.title || row.preview || t("session.untitled");
}

customElements.define("session-list", SessionList);
