// Dialogs and short messages at the edge of the page.

import { h, iconButton } from "./dom.js";
import { t } from "./i18n.js";

/** Show a dialog; closes with Escape, and gives the focus back. */
export function openDialog(title, body, { actions = [], wide = false, onclose, fixed = false } = {}) {
  const heading = h("h2", { id: "dialog-title" }, title);
  const dialog = h("dialog", { class: wide ? "wide" : null, "aria-labelledby": "dialog-title" },
    h("header", {}, heading, fixed ? null : iconButton("close", t("close"), () => dialog.close())),
    h("div", { class: "body" }, body),
    actions.length ? h("footer", {}, actions) : null);
  const before = document.activeElement;
  if (fixed) dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => {
    dialog.remove();
    onclose?.();
    before?.isConnected && before.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Ask for yes or no. */
export function confirmed(title, text, yes) {
  return new Promise((resolve) => {
    let answer = false;
    const choose = (value) => () => { answer = value; dialog.close(); };
    const dialog = openDialog(title, h("p", {}, text), {
      actions: [
        h("button", { type: "button", onclick: choose(false) }, t("cancel")),
        h("button", { type: "button", class: "danger solid", onclick: choose(true) }, yes),
      ],
      onclose: () => resolve(answer),
    });
  });
}

/** Ask for one line of text; null if nothing was given. */
export function asked(title, label, value = "", props = {}) {
  return new Promise((resolve) => {
    let answer = null;
    const box = h("input", { value, ...props });
    const form = h("form", {
      method: "dialog", class: "stack",
      onsubmit: (event) => { event.preventDefault(); answer = box.value; dialog.close(); },
    }, h("label", {}, label, box), h("div", { class: "row-end" }, h("button", { class: "primary" }, t("ok"))));
    const dialog = openDialog(title, form, { onclose: () => resolve(answer) });
    box.select();
  });
}

let place = null;

/** Say something for a few seconds; screen readers say it too. */
export function say(text, kind = "info") {
  place ??= document.body.appendChild(h("div", { class: "toasts", role: "status", "aria-live": "polite", popover: "manual" }));
  const toast = h("div", { class: `toast ${kind}` }, text,
    iconButton("close", t("close"), () => { toast.remove(); if (!place.childElementCount) place.hidePopover?.(); }));
  place.append(toast);
  // A popover is above dialogs; shown again, it is above dialogs that came later.
  if (place.matches(":popover-open")) place.hidePopover();
  place.showPopover();
  setTimeout(() => toast.remove(), kind === "error" ? 12_000 : 5000);
}

export function sayError(error) {
  if (error?.status === 401 || error?.name === "AbortError") return;
  say(error instanceof TypeError ? t("unreachable") : error?.message || String(error), "error");
}

/** Run something that the server may refuse, and say its reason. */
export async function tried(work) {
  try {
    return await work();
  } catch (error) {
    sayError(error);
    return undefined;
  }
}
