// What a person must settle, answered where it stands in the conversation.

import { post } from "./api.js";
import { h, fill, foreign } from "./dom.js";
import { dateTime, textOf } from "./format.js";
import { named, t } from "./i18n.js";
import { jsonTree } from "./json-tree.js";
import { longText } from "./long-text.js";
import { schemaForm } from "./schema-form.js";
import { sayError, say } from "./dialog-box.js";

export class AskForm extends HTMLElement {
  /** `context`: {session, clientTools(), mayAnswer()}. */
  setUp(item, context) {
    Object.assign(this, { item, context });
    this.update();
    return this;
  }

  update() {
    const { item } = this;
    const state = item.resolution ?? (this.context.mayAnswer() ? "open" : "past");
    if (state === this.state) return;
    const held = this.contains(document.activeElement);
    this.state = state;
    this.className = `ask ${state === "open" ? "open" : "settled"}`;
    if (item.resolution) fill(this, settled(item));
    else if (state === "past") fill(this, h("p", {}, h("strong", {}, named("ask", item.ask.kind)), " ", t("ask.past")), about(item.ask));
    else fill(this, this.form());
    // The one who was about to answer must not lose their place in the page.
    if (held && !this.contains(document.activeElement)) this.dispatchEvent(new Event("leave", { bubbles: true }));
  }

  form() {
    const kind = FORMS[this.item.ask.kind];
    const form = h("form", { "aria-label": named("ask", this.item.ask.kind), onsubmit: (event) => event.preventDefault() },
      h("header", {}, h("span", { class: "dot waiting" }), h("strong", {}, named("ask", this.item.ask.kind)),
        this.item.expires ? h("small", {}, t("ask.expires", { time: dateTime(this.item.expires) })) : null),
      kind(this.item.ask, (command) => this.send(command), this.context));
    this.trouble = h("p", { class: "error-text", role: "alert" });
    form.append(this.trouble);
    return form;
  }

  async send(make) {
    let command;
    try {
      command = make();
    } catch (error) {
      this.trouble.textContent = error.message;
      return;
    }
    const buttons = [...this.querySelectorAll("button")];
    buttons.forEach((button) => { button.disabled = true; });
    try {
      await post(`sessions/${encodeURIComponent(this.context.session)}/commands`,
        { commands: [{ ...command, request_id: this.item.request }] });
    } catch (error) {
      if (error.status === 409 && this.item.resolution) say(t("ask.too_late"));
      else sayError(error);
    } finally {
      buttons.forEach((button) => { button.disabled = false; });
    }
  }
}

function buttons(...entries) {
  return h("div", { class: "actions" }, entries.filter(Boolean).map(([label, run, look]) =>
    h("button", { type: look === "primary" ? "submit" : "button", class: look, onclick: run }, label)));
}

function about(ask) {
  if (ask.questions) return h("ul", {}, ask.questions.map((one) => h("li", {}, foreign(one.question))));
  return ask.call ? callOf(ask.call) : longText(ask.message ?? ask.reason ?? "");
}

function callOf(call) {
  return h("div", { class: "call" }, h("p", {}, foreign(call.display_name ?? call.name, { class: "tool-name" })), jsonTree(call.input ?? {}, 2));
}

const FORMS = {
  question(ask, send) {
    const group = `q${Math.random()}`;
    const rows = ask.questions.map((question, index) => {
      const type = question.multi_select ? "checkbox" : "radio";
      const boxes = (question.options ?? []).map((option, place) => h("input", { type, name: `${group}-${index}`, value: place }));
      const own = h("input", { type: "text", "aria-label": t("ask.own_words_for", { question: question.question }), placeholder: t("ask.own_words") });
      const element = h("fieldset", {}, h("legend", {}, question.header ? h("span", { class: "tag" }, foreign(question.header)) : null, foreign(question.question)),
        boxes.map((box, place) => h("label", { class: "option" }, box, h("span", {}, foreign(question.options[place].label),
          question.options[place].description ? h("small", {}, foreign(question.options[place].description)) : null))), own);
      return { element, chosen: () => boxes.filter((box) => box.checked).map((box) => Number(box.value)), own };
    });
    const answer = () => {
      const selections = {};
      const custom = {};
      rows.forEach((row, index) => {
        if (row.chosen().length) selections[index] = row.chosen();
        if (row.own.value.trim()) custom[index] = row.own.value.trim();
        if (!selections[index] && !custom[index]) throw new Error(t("ask.unanswered", { question: ask.questions[index].question }));
      });
      return { kind: "answer_question", selections, custom };
    };
    return [rows.map((row) => row.element), buttons([t("ask.answer"), () => send(answer), "primary"],
      [t("ask.dismiss"), () => send(() => ({ kind: "withdraw" }))])];
  },

  permission(ask, send) {
    const reason = h("input", { type: "text", "aria-label": t("ask.reason"), placeholder: t("ask.reason") });
    const decide = (granted) => () => send(() => ({ kind: "decide_permission", granted, ...(reason.value.trim() ? { reason: reason.value.trim() } : {}) }));
    return [ask.description ? h("p", {}, foreign(ask.description)) : null, callOf(ask.call), reason,
      buttons([t("ask.allow"), decide(true), "primary"], [t("ask.deny"), decide(false), "danger"])];
  },

  client_tool(ask, send, context) {
    const spec = context.clientTools().find((tool) => tool.name === ask.call.name);
    const schema = spec?.output_schema ?? spec?.outputSchema;
    const result = schema ? schemaForm(schema) : textResult();
    const failed = h("input", { type: "checkbox" });
    const input = spec?.parameters?.properties ? describedInput(spec.parameters, ask.call.input) : jsonTree(ask.call.input ?? {}, 2);
    const give = () => {
      const value = result.read();
      return { kind: "return_result", content: typeof value === "string" ? value : JSON.stringify(value), ...(failed.checked ? { is_error: true } : {}) };
    };
    return [h("p", {}, t("ask.client_tool", { name: ask.call.name })), input, h("h4", {}, t("tool.result")), result.element,
      h("label", { class: "option" }, failed, t("ask.failed")),
      buttons([t("ask.return"), () => send(give), "primary"])];
  },

  continuation(ask, send) {
    const answer = (proceed) => () => send(() => ({ kind: "continue_turn", proceed }));
    return [longText(ask.message), buttons([t("ask.continue"), answer(true), "primary"], [t("ask.stop"), answer(false)])];
  },

  rollback(ask, send) {
    const group = `r${Math.random()}`;
    const boxes = ask.options.map((option, index) => h("input", { type: "radio", name: group, value: index, checked: index === 0 }));
    const choose = () => ({ kind: "roll_back", option: String(ask.options[boxes.findIndex((box) => box.checked)]?.id ?? "") || null });
    return [ask.error ? h("p", { class: "error-text" }, foreign(ask.error)) : null, ask.reason ? h("p", {}, foreign(ask.reason)) : null,
      h("fieldset", {}, h("legend", {}, t("ask.roll_back_to")), boxes.map((box, index) => h("label", { class: "option" }, box, foreign(optionText(ask.options[index]))))),
      buttons([t("ask.roll_back"), () => send(choose), "primary"], [t("ask.keep"), () => send(() => ({ kind: "roll_back", option: null }))])];
  },
};

function optionText(option) {
  const words = [option.label ?? option.title ?? option.action, option.target ?? option.description].filter((one) => typeof one === "string");
  return words.join(": ").replaceAll("_", " ") || JSON.stringify(option);
}

/** The arguments of a call beside what the tool's schema says of each. */
function describedInput(schema, input) {
  return h("dl", { class: "described" }, Object.entries({ ...schema.properties, ...Object.fromEntries(Object.keys(input ?? {}).map((name) => [name, schema.properties[name] ?? {}])) })
    .filter(([name]) => input?.[name] !== undefined)
    .map(([name, about]) => [h("dt", {}, foreign(about.title ?? name)), h("dd", {}, typeof input[name] === "object" ? jsonTree(input[name], 1) : foreign(String(input[name])),
      about.description ? h("small", {}, foreign(about.description)) : null)]));
}

function textResult() {
  const box = h("textarea", { rows: 3, "aria-label": t("tool.result"), spellcheck: "false" });
  return { element: box, read: () => box.value };
}

function settled(item) {
  const { answer, ask, resolution } = item;
  const said = [];
  if (answer?.kind === "answer_question") {
    ask.questions?.forEach((question, index) => {
      const chosen = (answer.selections?.[index] ?? []).map((place) => question.options?.[place]?.label).filter(Boolean);
      const own = answer.custom?.[index];
      if (chosen.length || own) said.push(h("li", {}, foreign(question.question), " ", h("strong", {}, foreign([...chosen, own].filter(Boolean).join(", ")))));
    });
    if (!said.length && (answer.message || answer.said)) said.push(h("li", {}, foreign(answer.message || textOf(answer.said))));
  }
  if (answer?.reason) said.push(h("li", {}, foreign(answer.reason)));
  if (answer?.kind === "roll_back" && answer.option) said.push(h("li", {}, foreign(answer.option)));
  const name = ask.call && ask.kind !== "question" ? [" ", foreign(ask.call.name, { class: "tool-name" })] : null;
  return [h("p", {}, h("span", { class: `dot ${resolution}` }), named("ask", ask.kind), name, " ", h("em", {}, named("resolution", resolution))),
    said.length ? h("ul", {}, said) : null];
}

customElements.define("ask-form", AskForm);
