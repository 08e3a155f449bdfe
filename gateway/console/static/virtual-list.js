// A list of which only the part in view has elements. All rows have one height, which CSS says (--row).

import { h, frame } from "./dom.js";

const BEYOND = 8;

/** Calls `onselect(index)` and `onend()`; `draw(index)` makes the element of a row. */
export class VirtualList extends HTMLElement {
  setUp({ draw, onopen, onend, label, empty }) {
    Object.assign(this, { draw, onopen, onend, empty });
    this.count = 0;
    this.active = 0;
    this.shown = new Map();
    this.space = h("div", { class: "space", role: "presentation" });
    this.setAttribute("role", "listbox");
    this.setAttribute("aria-label", label);
    this.tabIndex = 0;
    this.append(this.space);
    this.later = frame(() => this.show());
    this.addEventListener("scroll", this.later, { passive: true });
    this.addEventListener("keydown", (event) => this.onKey(event));
    this.addEventListener("click", (event) => this.onClick(event));
    this.watcher = new ResizeObserver(this.later);
    this.watcher.observe(this);
    return this;
  }

  disconnectedCallback() {
    this.watcher?.disconnect();
  }

  connectedCallback() {
    this.watcher?.observe(this);
  }

  /** The height of a row in pixels: CSS has it in the size of letters. */
  measure() {
    if (this.measuredAt !== this.clientWidth) {
      const probe = h("div", { class: "row" });
      this.space.append(probe);
      this.height = probe.getBoundingClientRect().height || 40;
      this.measuredAt = this.clientWidth;
      probe.remove();
    }
    return this.height;
  }

  /** Say how many rows there are; rows are drawn anew. */
  setCount(count) {
    this.count = count;
    this.active = Math.min(this.active, Math.max(0, count - 1));
    this.shown.clear();
    this.space.replaceChildren();
    this.show();
  }

  redraw() {
    this.setCount(this.count);
  }

  show() {
    if (!this.isConnected) return;
    const row = this.measure();
    this.space.style.height = `${this.count * row}px`;
    if (!this.count) {
      this.space.replaceChildren(...(this.empty ? [h("p", { class: "empty" }, this.empty())] : []));
      this.removeAttribute("aria-activedescendant");
      return;
    }
    const from = Math.max(0, Math.floor(this.scrollTop / row) - BEYOND);
    const to = Math.min(this.count, Math.ceil((this.scrollTop + this.clientHeight) / row) + BEYOND);
    for (const [index, element] of this.shown) {
      if (index < from || index >= to) {
        element.remove();
        this.shown.delete(index);
      }
    }
    for (let index = from; index < to; index += 1) {
      if (!this.shown.has(index)) this.place(index, row);
    }
    this.mark();
    if (to >= this.count - 4) this.onend?.();
  }

  place(index, row) {
    const element = this.draw(index);
    element.classList.add("row");
    element.id ||= `row-${index}`;
    element.dataset.index = index;
    element.setAttribute("role", "option");
    element.setAttribute("aria-setsize", this.count);
    element.setAttribute("aria-posinset", index + 1);
    element.style.transform = `translateY(${index * row}px)`;
    this.shown.set(index, element);
    this.space.append(element);
  }

  mark() {
    for (const [index, element] of this.shown) element.classList.toggle("active", index === this.active);
    const element = this.shown.get(this.active);
    if (element) this.setAttribute("aria-activedescendant", element.id);
    else this.removeAttribute("aria-activedescendant");
  }

  moveTo(index) {
    this.active = Math.max(0, Math.min(this.count - 1, index));
    const row = this.measure();
    const top = this.active * row;
    if (top < this.scrollTop) this.scrollTop = top;
    if (top + row > this.scrollTop + this.clientHeight) this.scrollTop = top + row - this.clientHeight;
    this.show();
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.clientHeight / this.measure()) - 1);
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    if (event.key in moves) {
      event.preventDefault();
      this.moveTo(this.active + moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.count) this.onopen?.(this.active);
    }
  }

  onClick(event) {
    const element = event.target.closest("[data-index]");
    if (!element) return;
    this.active = Number(element.dataset.index);
    this.mark();
    this.onopen?.(this.active);
  }
}

customElements.define("virtual-list", VirtualList);
