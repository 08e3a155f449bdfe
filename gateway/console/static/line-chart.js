// A small chart of the last minutes: one line for each name.

import { h, svg, fill } from "./dom.js";
import { count } from "./format.js";

const POINTS = 150;
const [WIDTH, HEIGHT] = [300, 60];

export class LineChart extends HTMLElement {
  /** `lines`: [{name, hue}], or nothing for one line. */
  setUp({ title, unit = "", lines = [{ name: "", hue: 0 }] }) {
    Object.assign(this, { unit, lines, points: [] });
    this.now = h("strong", {});
    this.plot = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" });
    this.legend = h("div", { class: "chart-legend" });
    this.label = title;
    this.append(h("div", { class: "chart-head" }, h("span", {}, title), this.now), this.plot, this.legend);
    return this;
  }

  /** Add a point: a list of numbers, one for each line. */
  add(values) {
    this.points.push(values);
    if (this.points.length > POINTS) this.points.shift();
    const most = Math.max(1, ...this.points.flat());
    const x = (index) => ((index + POINTS - this.points.length) / (POINTS - 1)) * WIDTH;
    const y = (value) => HEIGHT - 2 - (value / most) * (HEIGHT - 6);
    fill(this.plot, this.lines.map((line, place) => svg("polyline", { class: `hue-${line.hue}`, points: this.points.map((point, index) => `${x(index).toFixed(1)},${y(point[place] ?? 0).toFixed(1)}`).join(" ") })));
    const total = values.reduce((sum, one) => sum + one, 0);
    this.now.textContent = `${count(Math.round(total * 10) / 10)}${this.unit}`;
    this.plot.setAttribute("aria-label", `${this.label}: ${this.now.textContent}`);
    if (this.lines.length > 1) fill(this.legend, this.lines.map((line, place) => h("span", { class: `hue-${line.hue}` }, h("i", { class: "swatch" }), line.name, " ", count(Math.round((values[place] ?? 0) * 10) / 10))));
  }
}

customElements.define("line-chart", LineChart);
