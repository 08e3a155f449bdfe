// The pieces of a conversation as elements: text, thinking, tool calls, pictures, files, cards, plans.

import { download, post } from "./api.js";
import { h, fill, foreign, icon, link, isWebAddress } from "./dom.js";
import { bytes, duration, partsOf, parsed } from "./format.js";
import { named, t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { longText } from "./long-text.js";
import { diffOfInput, diffOfText } from "./text-diff.js";
import { tried } from "./dialog-box.js";

/** The element of a block, kept and changed as the block grows. */
export function makeBlock(block, context) {
  const element = h("div", { class: `block ${block.kind}` });
  element.update = () => {
    if (element.version === block.version) return;
    element.version = block.version;
    (PAINTERS[block.kind] ?? PAINTERS.data)(element, block, context);
  };
  element.update();
  return element;
}

const PAINTERS = {
  text(element, block) {
    element.body ??= element.appendChild(document.createElement("long-text"));
    element.body.show(block.text, block.done);
    element.classList.toggle("growing", !block.done);
  },

  thinking(element, block) {
    if (!element.body) {
      element.body = document.createElement("long-text");
      element.label = h("span", {});
      element.append(h("details", {}, h("summary", {}, element.label), element.body));
    }
    element.body.show(block.text, block.done);
    element.label.textContent = block.done
      ? t("thought", { time: duration(Math.max(0, (block.ended ?? block.started) - block.started) * 1000) }) : t("thinking");
    element.classList.toggle("growing", !block.done);
  },

  tool_use(element, block, context) {
    if (!element.head) {
      element.head = h("summary", {});
      element.inner = h("div", { class: "tool-body" });
      element.append(h("details", { class: "tool" }, element.head, element.inner));
      element.firstChild.addEventListener("toggle", () => drawTool(element, block, context));
    }
    const state = toolState(block);
    fill(element.head, h("span", { class: `dot ${state}` }), h("span", { class: "tool-name" }, foreign(block.call?.display_name ?? block.call?.name ?? "…")),
      block.call?.origin && block.call.origin !== "builtin" ? h("span", { class: "tag" }, named("origin", block.call.origin)) : null,
      foreign(peekOf(block), { class: "peek" }),
      h("span", { class: "state" }, named("tool", state)),
      block.result?.duration_ms ? h("span", { class: "took" }, duration(block.result.duration_ms)) : null);
    if (element.firstChild.open) drawTool(element, block, context);
    drawCard(element, block, context);
  },

  image(element, block) {
    if (block.image) fill(element, picture(block.image));
    else fill(element, h("span", { class: "quiet-text" }, t("picture_coming")));
  },

  data(element, block) {
    if (!block.data) fill(element, h("span", { class: "quiet-text" }, "…"));
    else fill(element, dataPart(block.data));
  },
};

function toolState(block) {
  if (block.torn) return "torn";
  if (block.result) return block.result.is_error ? "failed" : "done";
  if (!block.done) return "writing";
  return block.status ?? "running";
}

function peekOf(block) {
  if (!block.done) return block.text.slice(-120);
  const values = Object.values(block.call?.input ?? {});
  return values.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" · ").slice(0, 120);
}

function drawTool(element, block) {
  const input = block.call?.input;
  const change = block.done ? diffOfInput(input) : null;
  const parts = [h("h4", {}, t("tool.input")), block.done ? jsonTree(input ?? {}, 2) : longText(block.text, false), change];
  if (block.output && !block.result) parts.push(h("h4", {}, t("tool.output")), longText(block.output, false));
  if (block.result) parts.push(h("h4", {}, t("tool.result")), contentOf(block.result.content));
  if (block.result?.meta) parts.push(h("h4", {}, t("tool.meta")), jsonTree(block.result.meta, 1));
  if (block.call) parts.push(h("p", { class: "quiet-text mono" }, block.call.call_id));
  fill(element.inner, parts);
}

/** A card: its address as a link, its HTML in a frame that can reach nothing. */
function drawCard(element, block, context) {
  const ui = block.result?.meta?.ui;
  if (!ui || element.card) return;
  element.card = h("div", { class: "card" });
  element.append(element.card);
  const uri = ui.resourceUri ?? ui.resource_uri;
  if (uri) element.card.append(h("p", {}, t("card.address"), " ", isWebAddress(uri) ? link(uri) : foreign(uri, { class: "mono" })));
  if (!(ui.resourceHTML ?? ui.resource_html)) return;
  const seq = block.result.seq;
  const show = async () => {
    const { url } = await post(`sessions/${encodeURIComponent(context.session)}/cards/${seq}`, {});
    open.replaceWith(h("iframe", { sandbox: "allow-scripts", src: url, title: t("card.title"), referrerpolicy: "no-referrer" }));
  };
  const open = h("button", { type: "button", onclick: () => tried(show) }, t("card.show"));
  if (context.shared) open.disabled = true;
  element.card.append(open);
  // The sandbox makes a card safe to show; a server that cannot give it leaves the button.
  if (!context.shared) show().catch(() => {});
}

/** Content that is a bare string or a list of parts; a string that is JSON is shown as JSON. */
export function contentOf(content) {
  if (typeof content === "string") {
    const value = /^\s*[[{]/.test(content) ? parsed(content) : undefined;
    return value !== undefined ? jsonTree(value, 2) : diffOfText(content) ?? h("div", { class: "plain" }, longText(content));
  }
  return partsOf(content).map((part) => makePart(part));
}

export function makePart(part) {
  if (part.kind === "text") return h("div", { class: "plain" }, longText(part.text));
  if (part.kind === "image") return picture(part);
  if (part.kind === "file") return file(part);
  if (part.kind === "data") return dataPart(part);
  if (part.kind === "thinking") return h("details", {}, h("summary", {}, t("thinking")), longText(part.text));
  return jsonTree(part, 2);
}

function picture({ url }) {
  if (/^data:image\/(png|jpeg|gif|webp|avif|bmp);base64,/.test(url)) {
    return h("img", { src: url, alt: t("picture"), class: "picture", loading: "lazy" });
  }
  // A picture from elsewhere would tell its server who looks at it, and when.
  return h("p", { class: "attachment" }, icon("link"), t("picture_at"), " ", isWebAddress(url) ? link(url) : foreign(url.slice(0, 200)));
}

function file(part) {
  const name = foreign(part.name);
  const about = [part.media_type, part.size ? bytes(part.size) : null].filter(Boolean).join(", ");
  const save = part.file_id ? h("button", { type: "button", class: "quiet", onclick: () => tried(() =>
    download(`files/${encodeURIComponent(part.file_id)}`, {}, part.name)) }, t("save")) : null;
  return h("p", { class: "attachment" }, icon("clip"), part.url && isWebAddress(part.url) ? link(part.url, part.name) : name,
    about ? h("span", { class: "quiet-text" }, about) : null, save);
}

function dataPart({ type, content }) {
  const steps = stepsOf(content);
  const label = h("span", { class: "tag" }, foreign(type));
  if (!steps) return h("div", { class: "data" }, label, content === null || content === undefined ? null : jsonTree(content, 2));
  return h("div", { class: "data plan" }, label, h("ol", {}, steps.map((step) => h("li", { class: step.done ? "done" : null },
    step.done ? icon("check") : null, foreign(step.text), step.status ? h("span", { class: "tag" }, named("step", step.status)) : null))));
}

/** The steps of a plan, if the content looks like one. */
function stepsOf(content) {
  const list = Array.isArray(content) ? content : content?.steps ?? content?.tasks ?? content?.todos ?? content?.plan?.steps ?? content?.plan;
  if (!Array.isArray(list) || !list.length) return null;
  const steps = list.map((one) => (typeof one === "string" ? { text: one } : {
    text: one.title ?? one.content ?? one.text ?? one.description ?? one.name, status: one.status,
    done: one.done === true || ["completed", "done"].includes(one.status),
  }));
  return steps.every((step) => typeof step.text === "string") ? steps : null;
}

export function userContent(content) {
  return typeof content === "string" ? h("div", { class: "plain" }, longText(content)) : partsOf(content).map(makePart);
}

