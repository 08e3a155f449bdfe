// Server-sent events over fetch: EventSource cannot send a key. It reconnects by itself and resumes after its cursor.

import { ask } from "./api.js";

const FIRST_PAUSE = 400;
const LONGEST_PAUSE = 5000;
// The server sends a heartbeat far more often: a line that is silent for so long is dead, even if nobody said so.
const SILENCE = 45_000;

export class EventStream extends EventTarget {
  /** `path(cursor)` and `query(cursor)` name the request; events: `item` (detail), `state` (detail: live | waiting | ended). */
  constructor(path, { query = () => ({}), cursor = null } = {}) {
    super();
    this.path = path;
    this.query = query;
    this.cursor = cursor;
    this.state = "connecting";
    this.losses = 0;
    this.pause = FIRST_PAUSE;
  }

  start() {
    this.run();
    return this;
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    clearTimeout(this.timer);
    this.wake?.();
  }

  /** Do not wait for the rest of the pause. */
  hurry() {
    this.wake?.();
  }

  async run() {
    while (!this.stopped) {
      try {
        await this.read();
      } catch (error) {
        if (this.stopped) return;
        if ([401, 403, 404, 410, 422].includes(error.status)) {
          this.tell("ended", error);
          return;
        }
      }
      clearTimeout(this.timer);
      if (this.stopped) return;
      this.losses += 1;
      this.tell("waiting");
      await new Promise((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, this.pause);
      });
      this.pause = Math.min(this.pause * 1.6, LONGEST_PAUSE);
    }
  }

  async read() {
    this.abort = new AbortController();
    const headers = { Accept: "text/event-stream" };
    if (this.cursor !== null) headers["Last-Event-ID"] = String(this.cursor);
    const response = await ask(this.path, { query: this.query(this.cursor), headers, signal: this.abort.signal });
    this.pause = FIRST_PAUSE;
    this.tell("live");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new Parser((event) => this.take(event));
    for (;;) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.abort.abort(), SILENCE);
      const { value, done } = await reader.read();
      if (done) return;
      parser.feed(value);
    }
  }

  take({ id, name, data }) {
    if (this.stopped) return;
    if (id !== undefined) this.cursor = id;
    this.dispatchEvent(new CustomEvent("item", { detail: { name, id, data: JSON.parse(data) } }));
  }

  tell(state, error) {
    if (state === this.state) return;
    this.state = state;
    this.dispatchEvent(new CustomEvent("state", { detail: { state, error, cursor: this.cursor, losses: this.losses } }));
  }
}

class Parser {
  constructor(give) {
    this.give = give;
    this.rest = "";
    this.clear();
  }

  clear() {
    this.id = undefined;
    this.name = "message";
    this.data = [];
  }

  feed(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop();
    for (const line of lines) this.line(line);
  }

  line(line) {
    if (line === "") {
      if (this.data.length) this.give({ id: this.id, name: this.name, data: this.data.join("\n") });
      this.clear();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.data.push(value);
    else if (field === "id") this.id = value;
    else if (field === "event") this.name = value;
  }
}
