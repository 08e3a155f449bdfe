// The log as a line: drag to any record, play it forwards or backwards, faster or slower, or follow what is new.

import { h, icon, iconButton, fill } from "./dom.js";
import { clock, count } from "./format.js";
import { t } from "./i18n.js";

const SPEEDS = [1, 2, 5, 10, 20];
const LONGEST_GAP = 2000;

export class TimeBar extends HTMLElement {
  /** Events: `seek` (detail: record number, or null for "follow what is new"), `reconnect`. */
  setUp({ log }) {
    this.log = log;
    this.at = null;
    this.speed = 1;
    this.direction = 1;
    this.range = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": t("time.label"), oninput: () => this.seek(Number(this.range.value)) });
    this.ticks = h("div", { class: "ticks", "aria-hidden": "true" });
    this.where = h("output", { class: "where" });
    this.player = iconButton("play", t("time.play"), () => this.toggle(1));
    this.backer = iconButton("play", t("time.play_back"), () => this.toggle(-1), { class: "icon-button turned" });
    this.speeds = h("select", { "aria-label": t("time.speed"), onchange: () => { this.speed = Number(this.speeds.value); } },
      SPEEDS.map((one) => h("option", { value: one }, `×${one}`)));
    this.live = h("button", { type: "button", class: "live", "aria-pressed": "true", onclick: () => this.seek(null) }, h("span", { class: "dot" }), t("time.live"));
    this.append(h("div", { class: "time-buttons" },
      iconButton("first", t("time.first"), () => this.seek(0)), this.backer,
      iconButton("left", t("time.back"), () => this.step(-1)), this.player, iconButton("right", t("time.forward"), () => this.step(1)),
      iconButton("last", t("time.last"), () => this.seek(this.log.head)), this.speeds),
    h("div", { class: "time-line" }, this.ticks, this.range), this.where, this.live,
    h("button", { type: "button", class: "reconnect-here", onclick: () => this.dispatchEvent(new Event("reconnect")) }, icon("link"), t("time.reconnect")));
    this.onchange = () => this.update();
    this.log.addEventListener("change", this.onchange);
    this.update();
    return this;
  }

  disconnectedCallback() {
    this.log?.removeEventListener("change", this.onchange);
    this.pause();
  }

  get position() {
    return this.at ?? this.log.head;
  }

  update() {
    const { head } = this.log;
    this.range.max = head;
    this.range.value = this.position;
    const band = this.log.bands[this.position - 1];
    this.where.textContent = t("time.where", { at: count(this.position), of: count(head) }) + (band?.at ? ` · ${clock(band.at)}` : "");
    this.range.setAttribute("aria-valuetext", this.where.textContent);
    this.live.setAttribute("aria-pressed", String(this.at === null));
    if (this.drawnAt !== head) this.drawTicks(head);
  }

  /** A mark where each turn starts; with thousands of turns, a few hundred marks. */
  drawTicks(head) {
    // While a turn streams, marks are drawn anew only now and then: they move by less than can be seen.
    if (head < (this.drawnAt ?? 0) * 1.02 && head > (this.drawnAt ?? 0) && this.position < head) return;
    this.drawnAt = head;
    const starts = [];
    for (const band of this.log.bands) if (band.record?.name === "turn.started") starts.push(band.seq);
    const every = Math.ceil(starts.length / 200) || 1;
    fill(this.ticks, starts.filter((_, index) => index % every === 0).map((seq) => {
      const tick = h("i", {});
      tick.style.left = `${(seq / head) * 100}%`;
      return tick;
    }));
  }

  seek(at) {
    this.at = at === null ? null : Math.max(0, Math.min(this.log.head, at));
    this.update();
    this.dispatchEvent(new CustomEvent("seek", { detail: this.at }));
  }

  step(by) {
    this.pause();
    this.seek(this.position + by);
  }

  toggle(direction) {
    const same = this.playing && this.direction === direction;
    this.pause();
    if (same) return;
    this.direction = direction;
    if (direction > 0 && this.position >= this.log.head) this.seek(0);
    const button = direction > 0 ? this.player : this.backer;
    this.playing = true;
    fill(button, icon("pause"));
    button.setAttribute("aria-label", t("time.pause"));
    this.next();
  }

  pause() {
    clearTimeout(this.timer);
    if (!this.playing) return;
    this.playing = false;
    fill(this.player, icon("play"));
    fill(this.backer, icon("play"));
    this.player.setAttribute("aria-label", t("time.play"));
    this.backer.setAttribute("aria-label", t("time.play_back"));
  }

  /** Show the records that are due, and wait for the next one as long as it took, divided by the speed. */
  next() {
    let to = this.position;
    let pause = 0;
    for (let steps = 0; steps < 500 && pause < 16; steps += 1) {
      const next = to + this.direction;
      if (next < 0 || next > this.log.head) break;
      const [one, other] = [this.log.bands[to - 1]?.at, this.log.bands[next - 1]?.at];
      to = next;
      pause += one && other ? Math.min(Math.abs(other - one) * 1000, LONGEST_GAP) / this.speed : 0;
    }
    if (to === this.position) {
      this.pause();
      return;
    }
    this.seek(to);
    this.timer = setTimeout(() => this.next(), Math.max(16, pause));
  }
}

customElements.define("time-bar", TimeBar);
