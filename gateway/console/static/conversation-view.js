// A conversation as people read it. Items have elements while they are near the view; items far above are asked for.

import { h, fill, foreign, frame, icon } from "./dom.js";
import { clock, count, dateTime, duration } from "./format.js";
import { named, t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { longText } from "./long-text.js";
import { contentOf, makeBlock, makePart, userContent } from "./message-parts.js";
import "./ask-form.js";

const AT_ONCE = 120;

export class ConversationView extends HTMLElement {
  /** `context`: {session, shared, clientTools(), mayAnswer()}. Events: `point` (detail: item or null). */
  setUp(context) {
    this.context = context;
    this.nodes = new Map();
    this.limit = AT_ONCE;
    this.list = h("div", { class: "items", role: "log", "aria-label": t("conversation.label"), "aria-live": "off" });
    this.earlier = h("button", { type: "button", class: "quiet earlier", hidden: true, onclick: () => this.more() });
    this.pane = h("div", { class: "conversation-pane", tabindex: "0", role: "region", "aria-label": t("conversation.label") }, this.earlier, this.list);
    this.append(this.pane);
    this.following = true;
    this.pane.addEventListener("scroll", () => {
      const { scrollTop, clientHeight, scrollHeight } = this.pane;
      this.following = scrollTop + clientHeight >= scrollHeight - 40;
      if (scrollTop < 200 && !this.earlier.hidden) this.more();
    }, { passive: true });
    this.addEventListener("pointerover", (event) => this.onPoint(event));
    this.addEventListener("pointerleave", () => this.dispatchEvent(new CustomEvent("point", { detail: null })));
    this.addEventListener("leave", () => this.pane.focus());
    // Pictures and folds change heights after they are drawn: whoever reads the end goes on reading the end.
    this.stick = frame(() => this.following && this.toEnd());
    this.watcher = new ResizeObserver(this.stick);
    this.watcher.observe(this.list);
    this.watcher.observe(this.pane);
    return this;
  }

  disconnectedCallback() {
    this.watcher?.disconnect();
  }

  toEnd() {
    this.pane.scrollTop = this.pane.scrollHeight;
  }

  more() {
    const before = this.pane.scrollHeight - this.pane.scrollTop;
    this.limit += AT_ONCE;
    this.show(this.transcript);
    this.pane.scrollTop = this.pane.scrollHeight - before;
  }

  show(transcript) {
    this.transcript = transcript;
    const items = transcript.items.slice(-this.limit);
    const rest = transcript.items.length - items.length;
    this.earlier.hidden = rest <= 0;
    this.earlier.textContent = t("conversation.earlier", { n: count(rest) });
    const wanted = new Set(items.map((item) => item.key));
    for (const [key, node] of this.nodes) {
      if (!wanted.has(key)) {
        node.remove();
        this.nodes.delete(key);
      }
    }
    let last = null;
    for (const item of items) last = this.place(item, last);
    if (!transcript.items.length) {
      this.blank ??= h("p", { class: "empty" }, t("conversation.empty"));
      this.list.append(this.blank);
    } else this.blank?.remove();
    this.stick();
  }

  place(item, last) {
    let node = this.nodes.get(item.key);
    if (!node) {
      node = this.make(item);
      this.nodes.set(item.key, node);
    }
    if (node.item !== item || node.version !== item.version) {
      if (node.item !== item && node.update && item.kind !== "ask") {
        // The log was replayed: the item is a new object of another age.
        const made = this.make(item);
        node.replaceWith(made);
        this.nodes.set(item.key, made);
        node = made;
      } else node.update?.(item);
      node.item = item;
      node.version = item.version;
      node.classList.toggle("undone", Boolean(item.hidden));
    }
    const next = last ? last.nextSibling : this.list.firstChild;
    if (next !== node) this.list.insertBefore(node, next);
    return node;
  }

  make(item) {
    const node = h("article", { class: `item ${item.kind} depth-${Math.min(item.depth, 4)}`, "data-seq": item.seq });
    node.item = item;
    const painter = PAINTERS[item.kind] ?? PAINTERS.custom;
    node.update = painter(node, item, this.context);
    node.version = item.version;
    node.classList.toggle("undone", Boolean(item.hidden));
    return node;
  }

  refreshAsks() {
    for (const form of this.list.querySelectorAll("ask-form")) form.update();
  }

  onPoint(event) {
    const node = event.target.closest?.(".item");
    this.dispatchEvent(new CustomEvent("point", { detail: node?.item ?? null }));
  }

  /** Light up the item that a record belongs to. */
  light(record) {
    this.list.querySelector(".item.lit")?.classList.remove("lit");
    if (!record) return;
    const { event } = record;
    const id = event.message_id ?? this.transcript?.calls.get(event.call_id)?.item.key.slice(2);
    const key = event.request_id ? `a:${event.request_id}` : event.command_id && this.nodes.has(`u:${event.command_id}`) ? `u:${event.command_id}` : `m:${id}`;
    this.nodes.get(key)?.classList.add("lit");
  }
}

function byline(who, item, ...more) {
  return h("header", {}, h("span", { class: "who" }, who), more, h("time", { datetime: new Date(item.at * 1000).toISOString(), title: dateTime(item.at) }, clock(item.at).slice(0, 8)));
}

function usageText(usage) {
  if (!usage || !(usage.input_tokens || usage.output_tokens)) return null;
  return h("span", { class: "usage", title: t("usage.title") }, t("usage", { in: count(usage.input_tokens ?? 0), out: count(usage.output_tokens ?? 0) }),
    usage.thinking_tokens ? t("usage.thinking", { n: count(usage.thinking_tokens) }) : null, usage.cache_read_tokens ? t("usage.cache", { n: count(usage.cache_read_tokens) }) : null);
}

/** A painter fills the element of a new item, and gives what must be done when the item changes (or nothing). */
const PAINTERS = {
  user(node, item) {
    node.append(byline(t("who.user"), item, item.mode ? h("span", { class: "tag" }, foreign(item.mode)) : null), ...[userContent(item.content)].flat());
  },

  seed(node, item) {
    node.append(byline(named("who", item.role), item), ...[contentOf(item.content)].flat());
  },

  message(node, item, context) {
    const head = h("div", {});
    const body = h("div", { class: "blocks" });
    const foot = h("footer", {});
    node.append(head, body, foot);
    const blocks = new Map();
    const paint = () => {
      const now = node.item ?? item;
      for (const block of now.blocks) {
        if (!blocks.has(block.id)) {
          blocks.set(block.id, makeBlock(block, context));
          body.append(blocks.get(block.id));
        } else blocks.get(block.id).update();
      }
      const started = `${now.role}${now.model}${now.ended ? 1 : 0}`;
      if (head.drawn !== started) {
        head.drawn = started;
        fill(head, byline(named("who", now.role ?? "assistant"), now, now.model ? foreign(now.model, { class: "model" }) : null,
          now.ended ? null : h("span", { class: "dot running" })));
      }
      const ended = `${now.annotations.length}${Boolean(now.ended)}`;
      if (foot.drawn !== ended) {
        foot.drawn = ended;
        fill(foot, now.annotations.map(annotation), now.ended ? [usageText(now.ended.usage), now.ended.duration_ms ? h("span", {}, duration(now.ended.duration_ms)) : null,
          now.ended.outcome !== "completed" ? h("span", { class: "tag warn" }, named("outcome", now.ended.outcome)) : null] : null);
      }
    };
    paint();
    return paint;
  },

  ask(node, item, context) {
    const form = document.createElement("ask-form");
    node.append(form);
    form.setUp(item, context);
    return (next) => { form.item = next ?? item; form.update(); };
  },

  turn(node, { event }) {
    const bad = event.outcome !== "completed";
    node.append(h("span", { class: `outcome ${event.outcome}` }, named("outcome", event.outcome)),
      event.stop_reason && event.stop_reason !== "end_turn" ? h("span", { class: "tag" }, named("stop", event.stop_reason)) : "",
      h("span", {}, duration(event.duration_ms ?? 0)), usageText(event.usage) ?? "");
    if (bad && event.fault) node.append(h("p", { class: "error-text" }, h("code", {}, event.fault.code), " ", foreign(event.fault.message)));
    if (event.result !== undefined && event.result !== null) node.append(h("div", { class: "result" }, h("h4", {}, t("turn.result")), contentOf(typeof event.result === "string" ? event.result : JSON.stringify(event.result))));
  },

  scope(node, item) {
    const state = h("span", { class: "tag" });
    node.append(icon("right"), h("strong", {}, t("scope", { name: "" })), foreign(item.event.title ?? item.event.agent ?? item.scope), state);
    const paint = () => { state.textContent = named("scope", (node.item ?? item).status); };
    paint();
    return paint;
  },

  letter(node, { event }) {
    node.append(h("p", { class: "quiet-text" }, foreign(event.sender), " → ", foreign(event.recipient)), ...[contentOf(event.content)].flat());
  },

  fault(node, { fault }) {
    node.append(h("p", { class: "error-text" }, h("code", {}, fault.code), " ", foreign(fault.message), fault.retryable ? h("span", { class: "tag" }, t("fault.retryable")) : ""));
    if (fault.details) node.append(jsonTree(fault.details, 1));
  },

  notice(node, { event }) {
    node.append(h("span", { class: `dot ${event.level ?? "info"}` }), foreign(event.title), h("span", { class: "tag" }, foreign(event.topic)));
    if (event.detail !== undefined && event.detail !== null) node.append(h("details", {}, h("summary", {}, t("details")), makePart({ kind: "data", type: event.topic, content: event.detail })));
  },

  compacted(node, { event }) {
    node.append(h("details", {}, h("summary", {}, t("compacted", { before: count(event.tokens_before ?? 0), after: count(event.tokens_after ?? 0) })), longText(event.summary)));
  },

  rewound(node, { event }) {
    node.append(t("rewound", { seq: event.to_seq }), " ", foreign(event.reason ?? ""));
  },

  closed(node, { event }) {
    node.append(t("closed", { reason: named("close", event.reason) }));
  },

  command(node, { command }) {
    node.append(named("command", command.kind));
  },

  result(node, { event }) {
    node.append(...[contentOf(event.content)].flat());
  },

  custom(node, { event }) {
    node.append(h("details", {}, h("summary", {}, t("custom"), " ", foreign(event?.topic ?? "")), jsonTree(event?.payload ?? {}, 2)));
  },
};

function annotation({ topic, content }) {
  const short = typeof content === "string" || (Array.isArray(content) && content.every((one) => typeof one === "string"));
  return h("details", { class: "annotation", open: short }, h("summary", {}, named("annotation", topic)),
    typeof content === "string" ? longText(content) : short ? h("ul", {}, content.map((one) => h("li", {}, foreign(one)))) : jsonTree(content, 2));
}

customElements.define("conversation-view", ConversationView);
