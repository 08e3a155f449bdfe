// Where a person writes to the agent: text, files, the directives that an agent knows, and stop.

import { ask, post } from "./api.js";
import { h, fill, foreign, icon, iconButton } from "./dom.js";
import { bytes } from "./format.js";
import { t } from "./i18n.js";
import { sayError } from "./dialog-box.js";

export class MessageComposer extends HTMLElement {
  setUp({ session, directives = [] }) {
    Object.assign(this, { session, directives, files: [], found: [], place: -1 });
    this.draft = `dragoman.draft.${session}`;
    this.box = h("textarea", { rows: 1, "aria-label": t("composer.label"), placeholder: t("composer.placeholder"),
      "aria-autocomplete": "list", "aria-controls": "palette", value: sessionStorage.getItem(this.draft) ?? "", dir: "auto" });
    this.palette = h("ul", { id: "palette", class: "palette", role: "listbox", "aria-label": t("composer.directives"), hidden: true });
    this.attached = h("ul", { class: "attached", "aria-label": t("composer.files") });
    this.picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": t("composer.attach"), onchange: () => { this.attach(this.picker.files); this.picker.value = ""; } });
    this.stopper = h("button", { type: "button", class: "stop", hidden: true, onclick: () => this.stop() }, icon("stop"), t("composer.stop"));
    this.sender = h("button", { type: "submit", class: "primary" }, icon("send"), t("composer.send"));
    this.append(this.palette, h("form", { onsubmit: (event) => { event.preventDefault(); this.send(); } }, this.attached, this.box,
      h("div", { class: "composer-bar" },
        iconButton("clip", t("composer.attach"), () => this.picker.click()),
        directives.length ? iconButton("slash", t("composer.directives"), () => this.openPalette(), { "aria-haspopup": "listbox" }) : null,
        h("span", { class: "hint" }, t("composer.hint")), this.stopper, this.sender, this.picker)));
    this.box.addEventListener("input", () => this.onInput());
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    this.box.addEventListener("blur", () => setTimeout(() => this.closePalette(), 150));
    this.box.addEventListener("paste", (event) => event.clipboardData?.files.length && this.attach(event.clipboardData.files));
    this.addEventListener("dragover", (event) => event.preventDefault());
    this.addEventListener("drop", (event) => { event.preventDefault(); this.attach(event.dataTransfer.files); });
    this.grow();
    return this;
  }

  setRunning(running) {
    this.stopper.hidden = !running;
  }

  focusBox() {
    this.box.focus();
  }

  grow() {
    this.box.style.height = "auto";
    this.box.style.height = `${Math.min(this.box.scrollHeight + 2, innerHeight * 0.4)}px`;
  }

  onInput() {
    this.grow();
    sessionStorage.setItem(this.draft, this.box.value);
    const word = this.wordAtCursor();
    if (word?.startsWith("/")) this.offer(word);
    else this.closePalette();
  }

  wordAtCursor() {
    return this.box.value.slice(0, this.box.selectionStart).match(/(?:^|\s)(\/[\w-]*)$/)?.[1];
  }

  openPalette() {
    this.box.focus();
    if (!this.wordAtCursor()) this.insert(this.box.value && !/\s$/.test(this.box.value) ? " /" : "/");
    this.offer(this.wordAtCursor() ?? "/");
  }

  offer(word) {
    this.found = this.directives.filter((one) => one.name.startsWith(word)).slice(0, 40);
    if (!this.found.length || (this.found.length === 1 && this.found[0].name === word)) {
      this.closePalette();
      return;
    }
    this.place = 0;
    fill(this.palette, this.found.map((one, index) => h("li", {
      role: "option", id: `directive-${index}`, "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); this.take(index); },
    }, h("code", {}, one.name, one.arguments ? h("span", { class: "quiet-text" }, ` ${one.arguments}`) : null), h("span", {}, foreign(one.effect ?? one.description ?? "")))));
    this.palette.hidden = false;
    this.choose(0);
  }

  choose(index) {
    this.place = (index + this.found.length) % this.found.length;
    for (const [at, row] of [...this.palette.children].entries()) {
      row.setAttribute("aria-selected", String(at === this.place));
      if (at === this.place) row.scrollIntoView({ block: "nearest" });
    }
    this.box.setAttribute("aria-activedescendant", `directive-${this.place}`);
  }

  take(index) {
    const word = this.wordAtCursor() ?? "";
    this.insert(`${this.found[index].name} `, word.length);
    this.closePalette();
  }

  /** Write text at the cursor, in the place of the last `back` characters. */
  insert(text, back = 0) {
    const end = this.box.selectionStart;
    this.box.setRangeText(text, end - back, this.box.selectionEnd, "end");
    sessionStorage.setItem(this.draft, this.box.value);
    this.grow();
  }

  closePalette() {
    this.palette.hidden = true;
    this.box.removeAttribute("aria-activedescendant");
  }

  onKey(event) {
    // Enter that ends a composition (of Chinese, for example) is not meant for us.
    if (event.isComposing) return;
    if (!this.palette.hidden) {
      const moves = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in moves) {
        event.preventDefault();
        this.choose(this.place + moves[event.key]);
        return;
      }
      if (event.key === "Escape" || event.key === "Tab" || event.key === "Enter") {
        event.preventDefault();
        event.stopPropagation();
        if (event.key === "Escape") this.closePalette();
        else this.take(this.place);
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      this.send();
    }
  }

  async attach(list) {
    for (const file of [...list]) {
      const form = new FormData();
      form.append("file", file, file.name);
      try {
        const part = await (await ask("files", { method: "POST", body: form })).json();
        this.files.push({ part, name: part.name ?? file.name, size: part.size ?? file.size });
        this.drawFiles();
      } catch (error) {
        sayError(error);
      }
    }
  }

  drawFiles() {
    fill(this.attached, this.files.map((one, index) => h("li", {}, icon("clip"), foreign(one.name), h("small", {}, bytes(one.size ?? 0)),
      iconButton("close", t("composer.detach", { name: one.name }), () => { this.files.splice(index, 1); this.drawFiles(); this.box.focus(); }))));
  }

  async send() {
    const text = this.box.value;
    if ((!text.trim() && !this.files.length) || this.sending) return;
    const content = this.files.length ? [...(text ? [{ kind: "text", text }] : []), ...this.files.map((one) => one.part)] : text;
    this.sending = true;
    const files = this.files;
    this.box.value = "";
    this.files = [];
    this.drawFiles();
    this.onInput();
    try {
      await post(`sessions/${encodeURIComponent(this.session)}/commands`, { commands: [{ kind: "send_message", content }] });
    } catch (error) {
      // What was written is not lost: it is back in the box.
      this.box.value = text + (this.box.value ? `\n${this.box.value}` : "");
      this.files = files;
      this.drawFiles();
      this.onInput();
      sayError(error);
    } finally {
      this.sending = false;
    }
  }

  async stop() {
    try {
      await post(`sessions/${encodeURIComponent(this.session)}/commands`, { commands: [{ kind: "interrupt" }] });
      this.box.focus();
    } catch (error) {
      sayError(error);
    }
  }
}

customElements.define("message-composer", MessageComposer);
