// The page as a whole: the bar at its top, and the part that the address names.

import { get, key, ask, session as keys } from "./api.js";
import { h, fill, iconButton } from "./dom.js";
import { chooseLanguage, otherLanguage, t } from "./i18n.js";
import { address, go, place } from "./route.js";
import { facts, readFacts } from "./server-facts.js";
import { sayError, tried } from "./dialog-box.js";
import { askForKey } from "./key-prompt.js";
import { openNewSession } from "./new-session.js";
import "./session-list.js";
import "./session-page.js";

const PAGES = {
  mappings: async ({ path, query }) => {
    await import("./mappings-page.js");
    return document.createElement("mappings-page").setUp({ dialect: path[1], line: query.get("line") });
  },
  examine: async () => {
    await import("./examine-page.js");
    return document.createElement("examine-page").setUp();
  },
  clients: async () => {
    await import("./clients-page.js");
    return document.createElement("clients-page").setUp();
  },
  server: async () => {
    await import("./server-page.js");
    return document.createElement("server-page").setUp();
  },
};

class DragomanConsole extends HTMLElement {
  async connectedCallback() {
    this.theme(localStorage.getItem("dragoman.theme"));
    await chooseLanguage();
    const shared = new URLSearchParams(location.search).get("share");
    if (shared) {
      await this.showShared(shared);
      return;
    }
    keys.addEventListener("locked", () => this.unlock());
    keys.addEventListener("open", () => this.start());
    window.addEventListener("hashchange", () => this.route());
    window.addEventListener("online", () => this.page?.log?.stream?.hurry());
    document.addEventListener("keydown", (event) => this.onKey(event));
    await this.start();
  }

  async start() {
    try {
      this.hello = await get("hello");
      await readFacts();
    } catch (error) {
      if (error.status === 401) return;
      this.showUnreachable(error);
      return;
    }
    this.build();
    await this.route();
  }

  showUnreachable(error) {
    fill(this, h("main", { class: "lonely" }, h("h1", {}, t("title")), h("p", {}, error instanceof TypeError ? t("unreachable") : error.message),
      h("button", { type: "button", class: "primary", onclick: () => this.start() }, t("again"))));
    setTimeout(() => this.querySelector(".lonely") && this.start(), 3000);
  }

  unlock() {
    if (this.asking) return;
    this.asking = true;
    askForKey(Boolean(key.get())).then((value) => {
      this.asking = false;
      key.set(value);
    });
  }

  build() {
    const { label } = otherLanguage();
    this.nav = h("nav", { "aria-label": t("nav.label") }, [["", "nav.sessions"], ["mappings", "nav.mappings"], ["examine", "nav.examine"], ["server", "nav.server"], ...(facts.may.figures ? [["clients", "nav.clients"]] : [])].map(([path, word]) =>
      h("a", { href: address(path ? [path] : []), "data-path": path }, t(word))));
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.list?.remove();
    this.list = document.createElement("session-list");
    this.body = h("div", { class: "body" }, this.list, this.main);
    fill(this, h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); this.main.focus(); } }, t("nav.skip")),
      h("header", { class: "top" }, h("a", { class: "brand", href: "#/" }, h("span", { class: "mark-d", "aria-hidden": "true" }), "Dragoman"), this.nav, h("span", { class: "spring" }),
        h("button", { type: "button", class: "quiet language", onclick: () => this.changeLanguage() }, label),
        iconButton("sun", t("theme"), () => this.nextTheme()),
        this.hello.auth?.length ? h("button", { type: "button", class: "quiet", onclick: () => { key.set(""); } }, facts.user ? `${facts.user} · ` : "", t("key.forget")) : null), this.body);
    this.body.classList.toggle("wide", localStorage.getItem("dragoman.wide") === "1");
    this.body.addEventListener("aside", () => localStorage.setItem("dragoman.wide", this.body.classList.toggle("wide") ? "1" : "0"));
    this.list.addEventListener("open", ({ detail }) => go(["sessions", detail]));
    this.list.addEventListener("new", () => openNewSession());
    this.list.addEventListener("import", () => this.import());
    this.list.setUp({ agents: facts.agents });
  }

  async route() {
    if (!this.main) return;
    const here = place();
    const [kind, id] = here.path;
    for (const link of this.nav.children) link.toggleAttribute("aria-current", link.dataset.path === (kind === "sessions" ? "" : kind ?? ""));
    this.body.dataset.page = kind ?? "home";
    this.list.setMain(kind === undefined && matchMedia("(max-width: 900px)").matches);
    this.list.hidden = kind !== undefined && kind !== "sessions";
    const run = this.run = (this.run ?? 0) + 1;
    try {
      const page = await this.open(here, kind, id);
      if (run !== this.run) return;
      this.page = page;
      fill(this.main, page);
      if (page.about) this.list.heard({ name: "session", data: page.about });
      this.list.select(kind === "sessions" ? id : null);
      if (this.moved) (page.querySelector("h1") ?? this.main).focus({ preventScroll: true });
      this.moved = true;
    } catch (error) {
      sayError(error);
      fill(this.main, h("div", { class: "lonely" }, h("p", {}, error.status === 404 ? t("not_found") : error.message ?? t("unreachable"))));
    }
  }

  async open(here, kind, id) {
    if (kind === "sessions" && id) {
      const page = document.createElement("session-page");
      await page.setUp({ id, view: here.query.get("view") ?? undefined, at: here.query.get("at") });
      return page;
    }
    if (PAGES[kind]) return PAGES[kind](here);
    return h("div", { class: "lonely home" }, h("h1", { tabindex: "-1" }, t("home.title")), h("p", {}, t("home.about")),
      h("button", { type: "button", class: "primary", onclick: () => openNewSession() }, t("sessions.new")), h("p", { class: "keys" }, t("home.keys")));
  }

  async showShared(token) {
    this.main = h("main", { id: "main" });
    fill(this, h("header", { class: "top" }, h("span", { class: "brand" }, h("span", { class: "mark-d", "aria-hidden": "true" }), "Dragoman"), h("span", { class: "tag" }, t("shared"))), h("div", { class: "body", "data-page": "sessions" }, this.main));
    try {
      this.main.append(await document.createElement("session-page").setUp({ shared: token }));
    } catch (error) {
      fill(this.main, h("div", { class: "lonely" }, h("p", {}, error.status === 404 ? t("shared.gone") : error.message)));
    }
  }

  import() {
    const picker = h("input", { type: "file", accept: ".zip,.jsonl,.json", onchange: () => tried(async () => {
      const [file] = picker.files;
      const type = file.name.endsWith(".zip") ? "application/zip" : "application/jsonl";
      const made = await (await ask("sessions/import", { method: "POST", body: file, headers: { "Content-Type": type } })).json();
      go(["sessions", made.session_id]);
    }) });
    picker.click();
    this.picker = picker;
  }

  /** Keys for the whole page; none of them has a meaning while somebody writes. */
  onKey(event) {
    const writing = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open], [popover]:popover-open.menu")) return;
    if (event.key === "Escape" && writing) { writing.blur(); return; }
    if (writing) return;
    const keysOf = {
      n: () => openNewSession(), "/": () => this.list.box.focus(), c: () => this.page?.composer?.focusBox(), l: () => this.list.list.focus(),
      p: () => this.page?.grid?.pane.focus(), ",": () => this.page?.time?.step(-1), ".": () => this.page?.time?.step(1), "?": () => this.showKeys(),
      1: () => go([]), 2: () => go(["mappings"]), 3: () => go(["examine"]), 4: () => go(["server"]),
    };
    if (!keysOf[event.key]) return;
    event.preventDefault();
    keysOf[event.key]();
  }

  async showKeys() {
    const { openDialog } = await import("./dialog-box.js");
    openDialog(t("keyboard"), h("dl", { class: "keyboard" }, t("keyboard.all").split("\n").map((line) => line.split(" = ")).map(([name, text]) => [h("dt", {}, h("kbd", {}, name)), h("dd", {}, text)])));
  }

  changeLanguage() {
    const { name } = otherLanguage();
    sessionStorage.setItem("dragoman.lang", name);
    const here = new URL(location.href);
    here.searchParams.set("lang", name);
    location.replace(here);
  }

  theme(name) {
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
  }

  nextTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    localStorage.setItem("dragoman.theme", next);
    this.theme(next);
  }
}

customElements.define("dragoman-console", DragomanConsole);
