// A form made from a JSON Schema, and the value that was filled in. What a form cannot show is typed as JSON.

import { h, foreign } from "./dom.js";
import { parsed } from "./format.js";
import { t } from "./i18n.js";

let made = 0;

/** {element, read()}: `read` gives the value, or raises a message for the person. */
export function schemaForm(schema, value) {
  return field(schema ?? {}, value, "", true);
}

function typeOf(schema) {
  if (schema.enum || schema.const !== undefined) return "choice";
  const type = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  return type ?? (schema.properties ? "object" : "json");
}

function field(schema, value, name, needed) {
  const kind = typeOf(schema);
  const make = kind === "array" && schema.items && typeOf(schema.items) !== "json" ? MAKERS.list : MAKERS[kind] ?? MAKERS.json;
  return make(schema, value ?? schema.default, name, needed);
}

function labelled(schema, name, needed, control, read) {
  control.id = `field-${(made += 1)}`;
  const about = schema.description ? h("small", { id: `${control.id}-about` }, foreign(schema.description)) : null;
  if (about) control.setAttribute("aria-describedby", about.id);
  const title = name ? h("label", { for: control.id }, foreign(schema.title ?? name), needed ? h("span", { class: "needed", title: t("form.needed") }, " *") : null) : null;
  if (!name) control.setAttribute("aria-label", schema.title ?? t("form.value"));
  return { element: h("div", { class: "field" }, title, control, about), read };
}

function missing(name, needed) {
  if (needed) throw new Error(t("form.missing", { name: name || t("form.value") }));
  return undefined;
}

const MAKERS = {
  choice(schema, value, name, needed) {
    const options = schema.enum ?? [schema.const];
    const control = h("select", {}, needed ? null : h("option", { value: "" }, "—"),
      options.map((one, index) => h("option", { value: index, selected: one === value }, String(one))));
    return labelled(schema, name, needed, control, () => (control.value === "" ? undefined : options[Number(control.value)]));
  },

  string(schema, value, name, needed) {
    const long = (schema.maxLength ?? 0) > 200 || /text|content|body|code/.test(name);
    const types = { date: "date", "date-time": "text", email: "email", uri: "url" };
    const control = h(long ? "textarea" : "input", { rows: long ? 3 : null, type: long ? null : types[schema.format] ?? "text",
      value: value ?? "", maxlength: schema.maxLength, pattern: long ? null : schema.pattern, spellcheck: "false" });
    return labelled(schema, name, needed, control, () => (control.value === "" && !needed ? undefined : control.value));
  },

  number(schema, value, name, needed) {
    const control = h("input", { type: "number", value: value ?? "", step: schema.type === "integer" ? 1 : "any", min: schema.minimum, max: schema.maximum });
    return labelled(schema, name, needed, control, () => (control.value === "" ? missing(name, needed) : Number(control.value)));
  },

  integer: (...given) => MAKERS.number(...given),

  boolean(schema, value, name, needed) {
    const control = h("input", { type: "checkbox", checked: value === true });
    return labelled(schema, name, needed, control, () => control.checked);
  },

  null: () => ({ element: h("span", { class: "mono" }, "null"), read: () => null }),

  object(schema, value, name, needed) {
    const required = schema.required ?? [];
    const fields = Object.entries(schema.properties ?? {}).map(([one, inner]) => [one, field(inner, value?.[one], one, required.includes(one))]);
    if (!fields.length) return MAKERS.json(schema, value ?? {}, name, needed);
    const body = h("div", { class: "fields" }, fields.map(([, one]) => one.element));
    const element = name ? h("fieldset", {}, h("legend", {}, foreign(schema.title ?? name)), body) : body;
    return { element, read: () => {
      const found = fields.map(([one, inner]) => [one, inner.read()]).filter(([, inner]) => inner !== undefined);
      return found.length || needed ? Object.fromEntries(found) : undefined;
    } };
  },

  list(schema, value, name, needed) {
    const rows = h("div", { class: "fields" });
    const items = new Map();
    const add = (one) => {
      const item = field(schema.items, one, "", true);
      const row = h("div", { class: "list-row" }, item.element,
        h("button", { type: "button", class: "quiet", onclick: () => { items.delete(row); row.remove(); } }, t("form.remove")));
      items.set(row, item);
      rows.append(row);
    };
    for (const one of Array.isArray(value) ? value : []) add(one);
    const element = h("fieldset", {}, h("legend", {}, foreign(schema.title ?? name)), rows,
      h("button", { type: "button", class: "quiet", onclick: () => add() }, t("form.add")));
    return { element, read: () => (items.size || needed ? [...items.values()].map((item) => item.read()) : undefined) };
  },

  json(schema, value, name, needed) {
    const control = h("textarea", { rows: 3, class: "mono", spellcheck: "false",
      value: value === undefined ? "" : JSON.stringify(value, null, 2) });
    return labelled(schema, name, needed, control, () => {
      if (control.value.trim() === "") return missing(name, needed);
      const found = parsed(control.value);
      if (found === undefined) throw new Error(t("form.not_json", { name: name || t("form.value") }));
      return found;
    });
  },
};
