// Records become a conversation: a fold without any element in it. The same records always give the same items.

/** The items of a conversation, in the order in which people read them. */
export class Transcript {
  constructor() {
    this.items = [];
    this.byKey = new Map();
    this.blocks = new Map();
    this.calls = new Map();
    this.scopes = new Map([["root", { depth: 0, title: "" }]]);
    this.session = { title: null, agent: null, closed: null, clientTools: [] };
    this.turn = null;
    this.open = new Map();
    this.last = 0;
  }

  /** Take the next record; returns false for a record that was taken before. */
  take(row) {
    if (row.seq <= this.last) return false;
    this.last = row.seq;
    READERS[row.event.type]?.(this, row.event, row);
    return true;
  }

  get status() {
    if (this.session.closed) return "closed";
    if (this.turn?.state === "ended") return this.turn.outcome === "failed" ? "failed" : "idle";
    if (!this.turn) return "idle";
    return this.turn.state === "suspended" || this.open.size ? "waiting" : "running";
  }

  add(key, row, item) {
    const scope = this.scopes.get(row.scope_id) ?? { depth: 0 };
    const whole = { ...item, key, seq: row.seq, at: row.at, turn: row.turn_id, scope: row.scope_id, depth: scope.depth,
      version: row.seq };
    this.items.push(whole);
    this.byKey.set(key, whole);
    return whole;
  }

  touch(key, row) {
    const item = this.byKey.get(key);
    if (item) item.version = row.seq;
    return item;
  }

  message(id, row) {
    return this.touch(`m:${id}`, row) ?? this.add(`m:${id}`, row, { kind: "message", blocks: [], annotations: [] });
  }

  block(event, row) {
    const item = this.message(event.message_id, row);
    let block = this.blocks.get(event.block_id);
    if (!block) {
      block = { id: event.block_id, kind: event.kind, text: "", done: false, started: row.at, item };
      this.blocks.set(event.block_id, block);
      item.blocks.push(block);
    }
    block.version = row.seq;
    if (event.call) {
      block.call = event.call;
      this.calls.set(event.call.call_id, block);
    }
    return block;
  }

  call(id, row) {
    const block = this.calls.get(id);
    if (!block) return null;
    block.version = row.seq;
    block.item.version = row.seq;
    return block;
  }
}

const READERS = {
  "session.created"(self, event, row) {
    Object.assign(self.session, { title: event.title, agent: event.agent });
    self.session.clientTools = event.settings?.client_tools ?? [];
    for (const [index, seed] of (event.history ?? []).entries()) {
      self.add(`h:${index}`, row, { kind: seed.role === "user" ? "user" : "seed", role: seed.role, content: seed.content });
    }
  },
  "session.updated"(self, event) {
    if (event.title !== undefined && event.title !== null) self.session.title = event.title;
    if (event.agent) self.session.agent = event.agent;
    if (event.settings) self.session.clientTools = event.settings.client_tools ?? [];
  },
  "session.compacted"(self, event, row) {
    self.add(`c:${row.seq}`, row, { kind: "compacted", event });
  },
  "session.rewound"(self, event, row) {
    for (const item of self.items) {
      if (item.seq > event.to_seq && !item.hidden) {
        item.hidden = true;
        item.version = row.seq;
      }
    }
    self.add(`r:${row.seq}`, row, { kind: "rewound", event });
  },
  "session.closed"(self, event, row) {
    self.session.closed = event.reason;
    self.add(`x:${row.seq}`, row, { kind: "closed", event });
  },
  "input.accepted"(self, event, row) {
    const command = event.command;
    if (command.kind === "send_message") {
      self.add(`u:${event.command_id}`, row, { kind: "user", role: "user", content: command.content, mode: command.mode });
    } else if (command.request_id) {
      const item = self.touch(`a:${command.request_id}`, row);
      if (item) item.answer = command;
    } else if (command.kind === "interrupt" || command.kind === "compact") {
      self.add(`i:${row.seq}`, row, { kind: "command", command });
    }
  },
  "input.requested"(self, event, row) {
    const item = self.add(`a:${event.request_id}`, row, { kind: "ask", request: event.request_id, ask: event.ask,
      expires: event.expires_at, call: event.call_id });
    self.open.set(event.request_id, item);
  },
  "input.resolved"(self, event, row) {
    const item = self.touch(`a:${event.request_id}`, row);
    if (item) item.resolution = event.resolution;
    self.open.delete(event.request_id);
  },
  "turn.started"(self, event, row) {
    self.turn = { id: row.turn_id, state: "running", started: row.at };
  },
  "turn.suspended"(self) {
    if (self.turn) self.turn.state = "suspended";
  },
  "turn.resumed"(self) {
    if (self.turn) self.turn.state = "running";
  },
  "turn.ended"(self, event, row) {
    self.turn = { id: row.turn_id, state: "ended", outcome: event.outcome };
    self.open.clear();
    self.add(`t:${row.turn_id}`, row, { kind: "turn", event });
  },
  "message.started"(self, event, row) {
    const item = self.message(event.message_id, row);
    Object.assign(item, { role: event.role ?? "assistant", model: event.model, window: event.context_window });
  },
  "message.annotated"(self, event, row) {
    self.message(event.message_id, row).annotations.push({ topic: event.topic, content: event.content });
  },
  "message.ended"(self, event, row) {
    Object.assign(self.message(event.message_id, row), { ended: { outcome: "completed", ...event } });
  },
  "block.started"(self, event, row) {
    self.block(event, row);
  },
  "block.delta"(self, event, row) {
    self.block(event, row).text += event.delta;
  },
  "block.ended"(self, event, row) {
    const block = self.block(event, row);
    Object.assign(block, { done: true, torn: event.torn, image: event.image, data: event.data, ended: row.at });
    if (event.text !== undefined && event.text !== null) block.text = event.text;
  },
  "tool.status"(self, event, row) {
    const block = self.call(event.call_id, row);
    if (block) block.status = event.status;
  },
  "tool.output"(self, event, row) {
    const block = self.call(event.call_id, row);
    if (block) block.output = (block.output ?? "") + event.delta;
  },
  "tool.returned"(self, event, row) {
    const block = self.call(event.call_id, row);
    if (block) block.result = { ...event, seq: row.seq };
    else self.add(`o:${row.seq}`, row, { kind: "result", event });
  },
  "scope.opened"(self, event, row) {
    const parent = self.scopes.get(event.parent) ?? { depth: 0 };
    self.scopes.set(row.scope_id, { depth: parent.depth + 1, title: event.title ?? event.agent ?? row.scope_id });
    self.add(`s:${row.scope_id}`, row, { kind: "scope", event, status: "running" });
  },
  "scope.status"(self, event, row) {
    const item = self.touch(`s:${row.scope_id}`, row);
    if (item) item.status = event.status;
  },
  "scope.message"(self, event, row) {
    self.add(`p:${row.seq}`, row, { kind: "letter", event });
  },
  "fault.raised"(self, event, row) {
    self.add(`f:${row.seq}`, row, { kind: "fault", fault: event.fault });
  },
  "notice.posted"(self, event, row) {
    self.add(`n:${row.seq}`, row, { kind: "notice", event });
  },
  custom(self, event, row) {
    self.add(`e:${row.seq}`, row, { kind: "custom", event });
  },
};
