// The log of one session as the page has it: a band for every record, with the frames of each dialect beside it.

import { get } from "./api.js";
import { EventStream } from "./event-stream.js";
import { frame } from "./dom.js";

const PAGE = 2000;

export class SessionLog extends EventTarget {
  /** Events: `change` (once per frame at most), `state` (detail), `gone`. */
  constructor(id, { shared = null } = {}) {
    super();
    this.id = id;
    this.base = shared ? `shared/${encodeURIComponent(shared)}` : `sessions/${encodeURIComponent(id)}`;
    this.shared = Boolean(shared);
    this.bands = [];
    this.columns = [];
    this.joined = new Map();
    this.totals = {};
    this.names = { records: new Set() };
    this.dirty = 0;
    this.state = "connecting";
    this.said = frame(() => this.dispatchEvent(new Event("change")));
  }

  get head() {
    return this.bands.length;
  }

  /** Follow the session in these dialects; columns that are new are read from the start first. */
  async follow(columns, length = 0) {
    const fresh = columns.filter((one) => !this.columns.includes(one));
    this.columns = [...columns];
    const run = this.run = (this.run ?? 0) + 1;
    this.stream?.stop();
    const isLong = length > PAGE;
    // A long log comes faster in pages; the stream goes on where they end.
    if (!this.head && (isLong || this.shared)) await this.read("records", null, 0, run);
    const upTo = this.head;
    if (upTo) await Promise.all(fresh.map((one) => this.read("frames", one, upTo, run)));
    if (this.run !== run || this.closed || this.shared) {
      this.setState("shared");
      return;
    }
    const stream = new EventStream(`${this.base}/stream`, {
      query: (cursor) => ({ columns: ["records", ...columns].join(","), after: cursor === null ? upTo : undefined }),
    });
    stream.addEventListener("item", ({ detail }) => this.takeItem(detail));
    stream.addEventListener("state", ({ detail }) => this.setState(detail.state, detail));
    this.stream = stream.start();
  }

  async read(kind, dialect, upTo, run) {
    for (let after = 0; after !== null;) {
      const page = await get(`${this.base}/${kind}`, { dialect, after, limit: PAGE });
      if (this.run !== run) return;
      for (const item of page.records ?? page.items) kind === "records" ? this.takeRecord(item) : this.takeFrames(item);
      after = page.next;
      if (upTo && after !== null && after >= upTo) return;
    }
  }

  takeItem({ name, data }) {
    if (name === "record") this.takeRecord(data);
    else if (name === "frames") this.takeFrames(data);
    else if (name === "end" && data.reason === "deleted") this.dispatchEvent(new Event("gone"));
  }

  band(seq) {
    // Frames may come before their record: the columns of the stream are not in step.
    while (this.bands.length < seq) this.bands.push({ seq: this.bands.length + 1, record: null, cells: {}, at: 0, version: 0 });
    return this.bands[seq - 1];
  }

  takeRecord(record) {
    const band = this.band(record.seq);
    if (band.record) return;
    band.record = record;
    band.at = record.at;
    this.names.records.add(record.name);
    this.changed(band);
  }

  takeFrames(item) {
    const band = this.band(item.seq);
    const cell = (band.cells[item.dialect] ??= []);
    if (cell.some((one) => one.due === item.due)) return;
    cell.push(item);
    cell.flat = undefined;
    const total = (this.totals[item.dialect] ??= { frames: 0, bytes: 0 });
    for (const one of item.frames) {
      total.frames += 1;
      total.bytes += one.size;
      (this.names[item.dialect] ??= new Set()).add(one.name);
      for (const seq of one.from ?? []) this.join(seq, item.seq);
    }
    this.changed(band);
  }

  changed(band) {
    band.version += 1;
    this.dirty = Math.min(this.dirty, band.seq - 1);
    this.said();
  }

  /** From which band on something changed since this was asked last. */
  takeDirty() {
    const from = this.dirty;
    this.dirty = Infinity;
    return from;
  }

  join(one, other) {
    if (one === other) return;
    for (const [from, to] of [[one, other], [other, one]]) {
      if (!this.joined.has(from)) this.joined.set(from, new Set());
      this.joined.get(from).add(to);
    }
  }

  /** The records that a frame of this record also speaks of. */
  counterparts(seq) {
    return this.joined.get(seq) ?? new Set();
  }

  /** How many records are there without a gap: only those are folded. */
  get whole() {
    this.solid ??= 0;
    while (this.bands[this.solid]?.record) this.solid += 1;
    return this.solid;
  }

  setState(state, detail = {}) {
    const before = this.state;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { ...detail, state, before } }));
  }

  close() {
    this.closed = true;
    this.run = -1;
    this.stream?.stop();
  }
}

/** All frames of a column at one record, with the item that holds each. */
export function framesOf(band, dialect) {
  const cell = band.cells[dialect];
  if (!cell) return [];
  return (cell.flat ??= cell.flatMap((item) => item.frames.map((one) => ({ ...one, due: item.due, at: item.at }))));
}

export function silenceOf(band, dialect) {
  return (band.cells[dialect] ?? []).find((item) => item.silence)?.silence ?? null;
}

/** The JSON within the text of a frame, whatever carries it; undefined if there is none. */
export function bodyOf(text) {
  try {
    if (/^(event|data|id|retry|:)/.test(text)) {
      const data = text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      return data.length ? JSON.parse(data.join("\n")) : undefined;
    }
    return JSON.parse(text.replace(/^\d+(-\[\])?(\/[^,]*,)?/, ""));
  } catch {
    return undefined;
  }
}
