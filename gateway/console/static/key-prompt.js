// The key of a server that wants one. It is kept for this tab only, and never in an address.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { openDialog } from "./dialog-box.js";

/** Ask until a key is given; `wrong` says that the last one was refused. */
export function askForKey(wrong) {
  return new Promise((resolve) => {
    let given = "";
    const box = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "key-about" });
    const form = h("form", { class: "stack", onsubmit: (event) => {
      event.preventDefault();
      given = box.value.trim();
      if (given) dialog.close();
    } }, wrong ? h("p", { class: "error-text", role: "alert" }, t("key.wrong")) : null, h("label", {}, t("key.label"), box), h("p", { id: "key-about", class: "quiet-text" }, t("key.about")), h("div", { class: "row-end" }, h("button", { class: "primary" }, t("key.use"))));
    const dialog = openDialog(t("key.title"), form, { fixed: true, onclose: () => resolve(given) });
    box.focus();
  });
}
