// One session: the conversation, the protocols beside it, and the line of time below.

import { download, get, patch, post, remove } from "./api.js";
import { h, fill, foreign, icon, iconButton, copyText } from "./dom.js";
import { named, t } from "./i18n.js";
import { asked, confirmed, openDialog, say, tried } from "./dialog-box.js";
import { openMenu } from "./menu.js";
import { go, note } from "./route.js";
import { agentNamed, dialectNames, facts, hueOf } from "./server-facts.js";
import { SessionLog } from "./session-log.js";
import { Transcript } from "./transcript.js";
import { openColumnsMenu } from "./grid-columns.js";
import { openReconnect } from "./reconnect-dialog.js";
import "./conversation-view.js";
import "./frame-grid.js";
import "./frame-detail.js";
import "./message-composer.js";
import "./time-bar.js";

const VIEWS = ["talk", "both", "wire"];

export class SessionPage extends HTMLElement {
  async setUp({ id, view, at, shared = null }) {
    Object.assign(this, { id, shared, at: null });
    this.view = VIEWS.includes(view) ? view : innerWidth < 900 ? "talk" : "both";
    const about = await get(shared ? `shared/${encodeURIComponent(shared)}` : `sessions/${encodeURIComponent(id)}`);
    this.about = about.session ?? about;
    this.id = this.about.session_id;
    this.log = new SessionLog(this.id, { shared });
    this.transcript = new Transcript();
    this.dialects = shared ? about.dialects ?? this.about.dialects ?? dialectNames() : dialectNames();
    this.hues = new Map(this.dialects.map((one) => [one, hueOf(one) || this.dialects.indexOf(one) + 1]));
    this.build();
    this.log.addEventListener("change", () => this.changed());
    this.log.addEventListener("state", ({ detail }) => this.onState(detail));
    this.log.addEventListener("gone", () => { say(t("session.gone")); go([]); });
    this.follow();
    if (at !== null && at !== undefined) this.wantedAt = Number(at);
    return this;
  }

  disconnectedCallback() {
    this.log?.close();
  }

  build() {
    const context = { session: this.id, shared: Boolean(this.shared), clientTools: () => this.transcript.session.clientTools,
      mayAnswer: () => this.at === null && !this.shared };
    this.conversation = document.createElement("conversation-view").setUp(context);
    this.grid = document.createElement("frame-grid").setUp({ log: this.log, dialects: this.dialects, hues: this.hues });
    this.detail = document.createElement("frame-detail").setUp({ log: this.log, hues: this.hues, shared: this.shared });
    this.time = document.createElement("time-bar").setUp({ log: this.log });
    const directives = agentNamed(this.about.agent)?.directives ?? [];
    this.composer = this.shared ? null : document.createElement("message-composer").setUp({ session: this.id, directives });
    this.heading = h("h1", { tabindex: "-1" });
    this.state = h("span", { class: "pill" });
    this.lineState = h("span", { class: "line-state", role: "status" });
    this.search = h("input", { type: "search", class: "wire-search", "aria-label": t("wire.search"), placeholder: t("wire.search"), oninput: () => this.grid.columns.search(this.search.value.trim()) });
    this.switch = h("div", { class: "switch", role: "group", "aria-label": t("session.view") });
    this.append(h("header", { class: "session-head" },
      iconButton("back", t("session.back"), () => go([]), { class: "icon-button back" }),
      this.shared ? null : iconButton("aside", t("session.aside"), () => this.dispatchEvent(new Event("aside", { bubbles: true })), { class: "icon-button aside" }), this.heading, this.state, this.lineState, h("span", { class: "spring" }),
      this.search, h("button", { type: "button", class: "columns-button", "aria-haspopup": "menu", onclick: (event) => openColumnsMenu(event.currentTarget, this.grid.columns) }, icon("gear"), t("wire.columns")),
      this.switch, this.shared ? null : iconButton("more", t("session.actions"), (event) => this.openActions(event.currentTarget), { "aria-haspopup": "menu" })),
    h("div", { class: "panes" }, h("section", { class: "talk" }, this.conversation, this.composer), h("section", { class: "wire" }, this.grid, this.detail)), this.time);
    this.wire();
    this.drawHead();
    this.setView(this.view);
  }

  wire() {
    this.time.addEventListener("seek", ({ detail }) => this.seek(detail));
    this.time.addEventListener("reconnect", () => openReconnect(this.id, this.time.position, this.hues));
    this.time.querySelector(".reconnect-here").hidden = Boolean(this.shared);
    this.grid.addEventListener("choose", ({ detail }) => this.detail.show(detail));
    this.grid.addEventListener("point", ({ detail }) => this.conversation.light(this.log.bands[detail - 1]?.record));
    this.grid.columns.addEventListener("change", () => this.follow());
    this.detail.addEventListener("close", () => { this.detail.hidden = true; this.grid.pane.focus(); });
    this.detail.addEventListener("curl", ({ detail }) => openReconnect(this.id, detail, this.hues));
    this.conversation.addEventListener("point", ({ detail }) => this.grid.light(detail?.seq ?? null, true));
  }

  /** Ask for the columns that are looked at, and for no others: each costs the server a subscriber. */
  follow() {
    const wanted = this.view === "talk" ? [] : this.grid.columns.shown.filter((one) => one !== "records");
    if (this.log.columns.length === wanted.length && wanted.every((one) => this.log.columns.includes(one)) && this.following) return;
    this.following = true;
    tried(() => this.log.follow(wanted, this.about.head));
  }

  setView(view) {
    this.view = view;
    this.dataset.view = view;
    fill(this.switch, VIEWS.map((one) => h("button", { type: "button", "aria-pressed": String(one === view), "data-view": one, onclick: () => {
      this.setView(one);
      note({ view: one });
      this.follow();
      this.switch.querySelector(`[data-view=${one}]`).focus();
    } }, t(`session.view.${one}`))));
    this.grid.later?.();
  }

  changed() {
    if (this.wantedAt !== undefined && this.log.whole >= this.wantedAt) {
      const at = this.wantedAt;
      this.wantedAt = undefined;
      this.time.seek(at);
    }
    this.fold(this.at ?? Infinity);
  }

  /** Bring the conversation to this record: on from where it is, or again from the start. */
  fold(limit) {
    const end = Math.min(limit, this.log.whole);
    if (this.transcript.last > end) this.transcript = new Transcript();
    for (let index = this.transcript.last; index < end; index += 1) this.transcript.take(this.log.bands[index].record);
    this.conversation.show(this.transcript);
    this.drawHead();
  }

  seek(at) {
    this.at = at;
    note({ at });
    this.toggleAttribute("data-past", at !== null);
    this.grid.setLimit(at ?? Infinity);
    if (at !== null) this.grid.toEnd();
    this.fold(at ?? Infinity);
    this.conversation.refreshAsks();
    if (at === null) { this.grid.toEnd(); this.conversation.toEnd(); }
  }

  drawHead() {
    const { session, status } = this.transcript;
    const title = session.title ?? this.about.title ?? this.about.preview ?? "";
    const said = `${title}|${status}|${this.about.agent}`;
    if (said === this.drawn) return;
    this.drawn = said;
    fill(this.heading, foreign(title || t("session.untitled")), h("small", {}, foreign(session.agent ?? this.about.agent)));
    this.state.className = `pill ${status}`;
    this.state.textContent = named("status", status);
    this.composer?.setRunning(status === "running" || status === "waiting");
  }

  onState({ state, before, cursor, losses, error }) {
    this.lineState.textContent = state === "waiting" ? t("line.lost") : "";
    this.lineState.classList.toggle("lost", state === "waiting");
    if (state === "live" && losses && before === "waiting") say(t("line.back", { seq: this.log.head }), "good");
    if (state === "ended" && error?.status === 404) { say(t("session.gone")); go([]); }
    this.dispatchEvent(new CustomEvent("line", { bubbles: true, detail: { state } }));
  }

  openActions(anchor) {
    const path = `sessions/${encodeURIComponent(this.id)}`;
    openMenu(anchor, [
      { label: t("session.rename"), run: () => this.rename() },
      { label: t("session.share"), run: () => this.share(), disabled: facts.may.share === false },
      { label: t("session.compact"), run: () => tried(() => post(`${path}/commands`, { commands: [{ kind: "compact" }] })) },
      { label: t("session.copy_id"), run: async () => { await copyText(this.id); say(t("copied")); } },
      null,
      { label: t("session.export_jsonl"), run: () => tried(() => download(`${path}/export`, { format: "jsonl" }, `${this.id}.jsonl`)) },
      { label: t("session.export_zip"), run: () => tried(() => download(`${path}/export`, { format: "zip" }, `${this.id}.zip`)) },
      null,
      { label: t("session.delete"), danger: true, run: () => this.remove() },
    ], t("session.actions"));
  }

  async rename() {
    const title = await asked(t("session.rename"), t("session.title"), this.transcript.session.title ?? "");
    if (title !== null) await tried(() => patch(`sessions/${encodeURIComponent(this.id)}`, { title }));
  }

  async remove() {
    if (!await confirmed(t("session.delete"), t("session.delete_sure"), t("session.delete"))) return;
    this.log.close();
    await tried(async () => { await remove(`sessions/${encodeURIComponent(this.id)}`); go([]); });
  }

  async share() {
    const made = await tried(() => post(`sessions/${encodeURIComponent(this.id)}/shares`, {}));
    if (!made) return;
    const url = new URL(made.url, location.href).href;
    const box = h("input", { value: url, readonly: true, "aria-label": t("session.share"), class: "mono" });
    openDialog(t("session.share"), [h("p", {}, t("session.share_about", { time: new Date(made.expires_at * 1000).toLocaleString() })), box], {
      actions: [h("button", { type: "button", class: "primary", onclick: async () => { await copyText(url); say(t("copied")); } }, t("copy"))],
    });
    box.select();
  }
}

customElements.define("session-page", SessionPage);
