// Which columns are shown, in which order, and which events of each: kept for this browser.

import { openMenu } from "./menu.js";
import { named, t } from "./i18n.js";
import { framesOf } from "./session-log.js";

const STORE = "dragoman.columns";

export class Columns extends EventTarget {
  constructor(dialects) {
    super();
    const all = ["records", ...dialects];
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    this.order = [...new Set([...(kept.order ?? []).filter((one) => all.includes(one)), ...all])];
    this.hidden = new Set((kept.hidden ?? []).filter((one) => all.includes(one)));
    this.filters = new Map();
    this.words = "";
  }

  get shown() {
    return this.order.filter((one) => !this.hidden.has(one));
  }

  changed() {
    localStorage.setItem(STORE, JSON.stringify({ order: this.order, hidden: [...this.hidden] }));
    this.dispatchEvent(new Event("change"));
  }

  toggle(column) {
    if (this.hidden.has(column)) this.hidden.delete(column);
    else if (this.shown.length > 1) this.hidden.add(column);
    this.changed();
  }

  move(column, by) {
    const shown = this.shown;
    const other = shown[shown.indexOf(column) + by];
    if (other) this.put(column, other);
  }

  /** Put a column in the place of another. */
  put(column, other) {
    if (!this.order.includes(column) || column === other) return;
    const place = this.order.indexOf(other);
    this.order = this.order.filter((one) => one !== column);
    this.order.splice(place, 0, column);
    this.changed();
  }

  filter(column, names) {
    if (names?.size) this.filters.set(column, names);
    else this.filters.delete(column);
    this.changed();
  }

  search(words) {
    this.words = words.toLowerCase();
    this.changed();
  }

  /** The frames of a column at this record that its filter lets through. */
  frames(band, dialect) {
    const frames = framesOf(band, dialect);
    const names = this.filters.get(dialect);
    return names ? frames.filter((one) => names.has(one.name)) : frames;
  }

  /** Whether a band is shown: every filter finds something in it, and so does the search. */
  lets(band) {
    for (const [column, names] of this.filters) {
      if (column === "records" ? !names.has(band.record?.name) : !this.frames(band, column).length) return false;
    }
    return !this.words || this.finds(band);
  }

  finds(band) {
    if (band.record && JSON.stringify(band.record.event).toLowerCase().includes(this.words)) return true;
    return Object.keys(band.cells).some((dialect) => framesOf(band, dialect)
      .some((one) => `${one.name} ${one.text}`.toLowerCase().includes(this.words)));
  }
}

export function openColumnMenu(anchor, columns, column, log) {
  const names = [...(log.names[column] ?? [])].sort();
  const chosen = columns.filters.get(column) ?? new Set();
  const flip = (name) => () => {
    const next = new Set(chosen);
    next.has(name) ? next.delete(name) : next.add(name);
    columns.filter(column, next);
  };
  openMenu(anchor, [
    { label: t("wire.hide"), run: () => columns.toggle(column), disabled: columns.shown.length < 2 },
    { label: t("wire.move_left"), run: () => columns.move(column, -1), disabled: columns.shown[0] === column },
    { label: t("wire.move_right"), run: () => columns.move(column, 1), disabled: columns.shown.at(-1) === column },
    null,
    { label: t("wire.all_events"), checked: !chosen.size, run: () => columns.filter(column, null) },
    ...names.map((name) => ({ label: name, checked: chosen.has(name), run: flip(name) })),
  ], t("wire.column_menu", { name: column }));
}

export function openColumnsMenu(anchor, columns) {
  openMenu(anchor, columns.order.map((column) => ({
    label: column === "records" ? t("wire.canonical") : named("dialect", column),
    checked: !columns.hidden.has(column), run: () => columns.toggle(column),
  })), t("wire.columns"));
}
