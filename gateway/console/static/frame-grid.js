// The protocols side by side: a band for every record, a column for the canonical events and for each dialect.
// Only the bands in view have elements; a band is as high as its column with the most frames.

import { h, fill, frame, iconButton, foreign } from "./dom.js";
import { t } from "./i18n.js";
import { bytes, clock, count, duration, gist } from "./format.js";
import { bodyOf, framesOf, silenceOf } from "./session-log.js";
import { openColumnMenu, Columns } from "./grid-columns.js";

const BEYOND = 6;

export class FrameGrid extends HTMLElement {
  /** Events: `choose` (detail: {seq, column, index}), `point` (detail: seq or null). */
  setUp({ log, dialects, hues }) {
    Object.assign(this, { log, hues, columns: new Columns(dialects) });
    this.limit = Infinity;
    this.view = [];
    this.offsets = [0];
    this.shown = new Map();
    this.active = { seq: 1, column: "records", index: 0 };
    this.head = h("div", { class: "grid-head", role: "row" });
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.pane = h("div", { class: "grid-pane", role: "grid", tabindex: "0", "aria-label": t("wire.label") },
      h("div", { role: "rowgroup", class: "grid-top" }, this.head), this.space);
    this.append(this.pane);
    this.following = true;
    this.later = frame(() => this.show());
    this.pane.addEventListener("scroll", () => { this.noticeEnd(); this.later(); }, { passive: true });
    this.pane.addEventListener("keydown", (event) => this.onKey(event));
    this.pane.addEventListener("pointerover", (event) => this.onPoint(event));
    this.pane.addEventListener("pointerleave", () => this.light(null));
    this.pane.addEventListener("click", (event) => this.onClick(event));
    this.pane.addEventListener("focus", () => this.mark());
    this.columns.addEventListener("change", () => this.rebuild());
    this.onchange = () => this.update();
    log.addEventListener("change", this.onchange);
    this.watcher = new ResizeObserver(this.later);
    this.watcher.observe(this.pane);
    this.drawHead();
    return this;
  }

  disconnectedCallback() {
    this.watcher?.disconnect();
    this.log?.removeEventListener("change", this.onchange);
  }

  /** Show the log up to this record, as it was then. */
  setLimit(limit) {
    if (limit === this.limit) return;
    this.limit = limit;
    this.rebuild();
  }

  rebuild() {
    this.log.dirty = 0;
    this.drawHead();
    this.shown.forEach((element) => element.remove());
    this.shown.clear();
    this.update();
  }

  update() {
    const from = this.log.takeDirty();
    if (from !== Infinity) this.measureFrom(from);
    this.show();
    if (this.following) this.toEnd();
    this.countFrames();
  }

  /** Find anew which bands are shown, and where, from the band with this index on. */
  measureFrom(from) {
    let low = this.view.length;
    while (low > 0 && this.view[low - 1] >= from) low -= 1;
    this.view.length = low;
    this.offsets.length = low + 1;
    const end = Math.min(this.log.bands.length, this.limit);
    const dialects = this.columns.shown.filter((one) => one !== "records");
    for (let index = Math.max(from, 0); index < end; index += 1) {
      const band = this.log.bands[index];
      if (!this.columns.lets(band)) continue;
      let lines = 1;
      for (const dialect of dialects) lines = Math.max(lines, this.columns.frames(band, dialect).length);
      this.view.push(index);
      this.offsets.push(this.offsets.at(-1) + lines);
    }
  }

  get row() {
    return (this.rowHeight ??= parseFloat(getComputedStyle(this).fontSize) * 2);
  }

  show() {
    if (!this.isConnected || !this.pane.clientHeight) return;
    this.rowHeight = undefined;
    const row = this.row;
    this.space.style.height = `${this.offsets.at(-1) * row}px`;
    this.pane.setAttribute("aria-rowcount", this.view.length + 1);
    const top = this.pane.scrollTop / row;
    const from = Math.max(0, this.placeAt(top) - BEYOND);
    const to = Math.min(this.view.length, this.placeAt(top + this.pane.clientHeight / row) + BEYOND);
    const wanted = new Set();
    for (let place = from; place < to; place += 1) wanted.add(this.draw(place, row));
    for (const [seq, element] of this.shown) {
      if (!wanted.has(seq)) {
        element.remove();
        this.shown.delete(seq);
      }
    }
    this.mark();
    this.light(this.lit);
  }

  /** The place of the band at this line: the last one that starts at or before it. */
  placeAt(line) {
    let [low, high] = [0, this.view.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.offsets[middle + 1] <= line) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw(place, row) {
    const band = this.log.bands[this.view[place]];
    let element = this.shown.get(band.seq);
    if (!element || element.version !== band.version) {
      const made = this.makeBand(band);
      element ? element.replaceWith(made) : this.space.append(made);
      made.version = band.version;
      this.shown.set(band.seq, element = made);
    }
    element.setAttribute("aria-rowindex", place + 2);
    element.style.transform = `translateY(${this.offsets[place] * row}px)`;
    element.style.height = `${(this.offsets[place + 1] - this.offsets[place]) * row}px`;
    return band.seq;
  }

  makeBand(band) {
    return h("div", { class: `band${band.record?.name.startsWith("turn.") ? " turn-edge" : ""}`, role: "row",
      "data-seq": band.seq }, this.columns.shown.map((column) => h("div", {
      class: `cell hue-${this.hues.get(column) ?? 0}`, role: "gridcell", "data-column": column,
    }, column === "records" ? this.recordLine(band) : this.frameLines(band, column))));
  }

  recordLine(band) {
    const { record, seq } = band;
    if (!record) return h("div", { class: "line pending", id: `line-${seq}-records-0` }, h("span", { class: "seq" }, seq));
    const before = this.log.bands[seq - 2]?.at;
    return h("div", { class: "line", id: `line-${seq}-records-0`, "data-index": 0 },
      h("span", { class: "seq" }, seq),
      h("span", { class: "time", title: clock(band.at) }, before ? `+${duration((band.at - before) * 1000)}` : clock(band.at)),
      h("span", { class: "name" }, record.name, record.variant ? h("span", { class: "variant" }, `.${record.variant}`) : null),
      foreign(gist(record.event), { class: "peek" }));
  }

  frameLines(band, column) {
    const frames = this.columns.frames(band, column);
    if (frames.length) {
      return frames.map((one, index) => h("div", { class: "line", id: `line-${band.seq}-${column}-${index}`, "data-index": index },
        h("span", { class: "name" }, one.name),
        one.due ? h("span", { class: "due", title: t("wire.due") }, `⏱ +${duration(Math.max(0, one.due - one.at) * 1000)}`) : null,
        foreign(peekOf(one), { class: "peek" }),
        h("span", { class: "size" }, bytes(one.size))));
    }
    const silence = silenceOf(band, column);
    if (!silence) return h("div", { class: "line pending", id: `line-${band.seq}-${column}-0` }, band.cells[column] ? "" : "…");
    const text = silenceText(silence);
    // The same reason over many records is said once; it is shown again where somebody points.
    const before = this.log.bands[band.seq - 2];
    const same = before?.cells[column] && !framesOf(before, column).length && silenceText(silenceOf(before, column) ?? {}) === text;
    return h("div", { class: `line silent ${same ? "ditto " : ""}${silence.level === "dropped" || silence.level === "rejected" ? "lost" : ""}`,
      id: `line-${band.seq}-${column}-0`, "data-index": 0, title: text }, h("span", { class: "why" }, text));
  }

  drawHead() {
    const { shown } = this.columns;
    const wide = matchMedia("(max-width: 700px)").matches ? "minmax(84vw, 1fr)" : "minmax(10.5rem, 1fr)";
    const first = matchMedia("(max-width: 700px)").matches ? wide : "minmax(15.5rem, 1.7fr)";
    this.pane.style.setProperty("--cols", shown.map((one) => (one === "records" ? first : wide)).join(" "));
    this.pane.style.setProperty("--count", shown.length);
    fill(this.head, shown.map((column) => h("div", {
      class: `column-head hue-${this.hues.get(column) ?? 0}`, role: "columnheader", "data-column": column, draggable: "true",
      ondragstart: (event) => event.dataTransfer.setData("text/x-column", column),
      ondragover: (event) => event.preventDefault(),
      ondrop: (event) => { event.preventDefault(); this.columns.put(event.dataTransfer.getData("text/x-column"), column); },
    },
    h("span", { class: "swatch" }),
    h("strong", {}, column === "records" ? t("wire.canonical") : column),
    h("span", { class: "tally" }),
    this.columns.filters.get(column) ? h("span", { class: "filtered" }, t("wire.filtered")) : null,
    iconButton("more", t("wire.column_menu", { name: column === "records" ? t("wire.canonical") : column }),
      (event) => openColumnMenu(event.currentTarget, this.columns, column, this.log), { "aria-haspopup": "menu" }))));
    this.countFrames();
  }

  countFrames() {
    for (const head of this.head.children) {
      const { column } = head.dataset;
      const total = this.log.totals[column];
      head.querySelector(".tally").textContent = column === "records"
        ? t("wire.records", { n: count(this.log.bands.length) })
        : t("wire.frames", { n: count(total?.frames ?? 0), size: bytes(total?.bytes ?? 0) });
    }
  }

  onPoint(event) {
    const band = event.target.closest?.(".band");
    this.light(band ? Number(band.dataset.seq) : null);
  }

  /** Light up a record in all columns, and the records that its frames also speak of. */
  light(seq, told = false) {
    if (seq !== this.lit && !told) this.dispatchEvent(new CustomEvent("point", { detail: seq }));
    this.lit = seq;
    const others = seq ? this.log.counterparts(seq) : new Set();
    for (const [one, element] of this.shown) element.classList.toggle("lit", one === seq || others.has(one));
  }

  onClick(event) {
    const cell = event.target.closest(".cell");
    if (!cell) return;
    const seq = Number(cell.closest(".band").dataset.seq);
    const index = Number(event.target.closest("[data-index]")?.dataset.index ?? 0);
    this.choose({ seq, column: cell.dataset.column, index });
  }

  choose(place) {
    this.active = place;
    this.mark();
    this.dispatchEvent(new CustomEvent("choose", { detail: place }));
  }

  mark() {
    this.pane.querySelector(".line.active")?.classList.remove("active");
    const { seq, column, index } = this.active;
    const line = this.pane.querySelector(`#line-${seq}-${CSS.escape(column)}-${index}`);
    line?.classList.add("active");
    if (line) this.pane.setAttribute("aria-activedescendant", line.id);
    else this.pane.removeAttribute("aria-activedescendant");
  }

  onKey(event) {
    if (event.target !== this.pane) return;
    const { shown } = this.columns;
    const here = this.view.indexOf(this.active.seq - 1);
    const page = Math.max(1, Math.floor(this.pane.clientHeight / this.row) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.step(here, steps[event.key]);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      event.preventDefault();
      const at = shown.indexOf(this.active.column) + (event.key === "ArrowRight" ? 1 : -1);
      if (event.altKey) this.columns.move(this.active.column, event.key === "ArrowRight" ? 1 : -1);
      else this.moveTo({ ...this.active, column: shown[Math.max(0, Math.min(shown.length - 1, at))], index: 0 });
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(this.active);
    }
  }

  step(here, by) {
    const band = this.log.bands[this.active.seq - 1];
    const frames = this.active.column === "records" || !band ? 1 : this.columns.frames(band, this.active.column).length;
    if (Math.abs(by) === 1 && this.active.index + by >= 0 && this.active.index + by < frames) {
      this.moveTo({ ...this.active, index: this.active.index + by });
      return;
    }
    const place = Math.max(0, Math.min(this.view.length - 1, here + by));
    if (this.view.length) this.moveTo({ ...this.active, seq: this.view[place] + 1, index: 0 });
  }

  moveTo(place) {
    this.active = place;
    this.reveal(place.seq);
    this.light(place.seq);
    this.mark();
    const cell = this.pane.querySelector(".line.active")?.closest(".cell");
    if (cell && cell.scrollWidth) cell.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** Bring a record into view. */
  reveal(seq) {
    const place = this.view.indexOf(seq - 1);
    if (place < 0) return;
    const [top, bottom] = [this.offsets[place] * this.row, this.offsets[place + 1] * this.row];
    const room = this.pane.clientHeight - this.head.offsetHeight;
    if (top < this.pane.scrollTop) this.pane.scrollTop = top;
    else if (bottom > this.pane.scrollTop + room) this.pane.scrollTop = bottom - room;
    this.show();
  }

  noticeEnd() {
    const { scrollTop, clientHeight, scrollHeight } = this.pane;
    this.following = scrollTop + clientHeight >= scrollHeight - this.row;
  }

  toEnd() {
    this.pane.scrollTop = this.pane.scrollHeight;
    this.following = true;
  }
}

/** One line of what a frame says, made once; a long frame is not read for it. */
function peekOf(one) {
  return (one.peek ??= one.text.length > 8000 ? one.text.slice(0, 200) : gist(bodyOf(one.text) ?? one.text, one.name));
}

/** Why a dialect says nothing about a record, in the words of its table. */
export function silenceText({ level, note, feature }) {
  if (level === "dropped" || level === "rejected") return note || t("wire.dropped", { feature: feature ?? "" });
  return note || t("wire.silent");
}

customElements.define("frame-grid", FrameGrid);
