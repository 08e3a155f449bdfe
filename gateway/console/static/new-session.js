// A new session: which agent, its options, and the tools that this page itself will carry out.

import { post } from "./api.js";
import { h, fill, foreign } from "./dom.js";
import { parsed } from "./format.js";
import { t } from "./i18n.js";
import { go } from "./route.js";
import { facts } from "./server-facts.js";
import { openDialog } from "./dialog-box.js";

const EXAMPLE_TOOL = [{ name: "read_sensor", description: "Reads a sensor of this machine.", parameters: { type: "object", required: ["sensor"], properties: { sensor: { type: "string", enum: ["door", "window"], description: "Which one" }, unit: { type: "string" } } } }];

export function openNewSession() {
  const agent = h("select", { onchange: () => drawOptions() }, facts.agents.map((one) => h("option", { value: one.name, selected: one.is_default === true }, one.title || one.name)));
  const title = h("input", { type: "text", maxlength: 200 });
  const about = h("p", { class: "quiet-text" });
  const options = h("div", { class: "fields" });
  const tools = h("textarea", { rows: 6, class: "mono", spellcheck: "false", "aria-label": t("new.tools") });
  const trouble = h("p", { class: "error-text", role: "alert" });
  let fields = [];
  const drawOptions = () => {
    const found = facts.agents.find((one) => one.name === agent.value);
    fill(about, foreign(found?.description ?? ""));
    fields = (found?.options ?? []).map((one) => {
      const choices = one.choices ?? one.options ?? [];
      const control = one.kind === "select" ? h("select", {}, choices.map((choice) => h("option", { value: choice, selected: choice === one.default }, choice)))
        : h("input", { type: one.kind === "secret" ? "password" : "text", value: one.default ?? "", autocomplete: "off" });
      return { one, control, element: h("label", {}, foreign(one.title || one.name), control, one.description ? h("small", {}, foreign(one.description)) : null) };
    });
    fill(options, fields.map((field) => field.element));
  };
  const create = async (event) => {
    event.preventDefault();
    const declared = tools.value.trim() ? parsed(tools.value) : [];
    if (!Array.isArray(declared)) {
      trouble.textContent = t("form.not_json", { name: t("new.tools") });
      return;
    }
    const chosen = Object.fromEntries(fields.filter(({ one, control }) => control.value !== (one.default ?? "")).map(({ one, control }) => [one.name, control.value]));
    try {
      const made = await post("sessions", { agent: agent.value, ...(title.value.trim() ? { title: title.value.trim() } : {}), ...(Object.keys(chosen).length ? { options: chosen } : {}), ...(declared.length ? { client_tools: declared } : {}) });
      dialog.close();
      go(["sessions", made.session_id]);
      requestAnimationFrame(() => document.querySelector("message-composer")?.focusBox());
    } catch (error) {
      trouble.textContent = error.message;
    }
  };
  const dialog = openDialog(t("sessions.new"), h("form", { class: "stack", onsubmit: create }, h("label", {}, t("new.agent"), agent), about, h("label", {}, t("session.title"), title), options,
    h("details", {}, h("summary", {}, t("new.tools")), h("p", { class: "quiet-text" }, t("new.tools_about")), tools, h("button", { type: "button", class: "quiet", onclick: () => { tools.value = JSON.stringify(EXAMPLE_TOOL, null, 2); } }, t("new.example"))),
    trouble, h("div", { class: "row-end" }, h("button", { class: "primary" }, t("new.create")))));
  drawOptions();
  agent.focus();
}
