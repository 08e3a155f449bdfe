// A menu that opens beside its button: closed with Escape or a click elsewhere, moved in with the arrow keys.

import { h } from "./dom.js";

/** Open a menu; an entry is {label, run, checked?, danger?, disabled?} or null for a line between two groups. */
export function openMenu(anchor, entries, label) {
  const radio = (entry) => (entry.checked === undefined ? "menuitem" : "menuitemcheckbox");
  const items = entries.filter((entry) => entry !== false).map((entry) => (entry === null ? h("hr") : h("button", {
    type: "button", role: radio(entry), class: entry.danger ? "danger" : null, disabled: Boolean(entry.disabled),
    "aria-checked": entry.checked === undefined ? null : String(entry.checked), tabindex: "-1",
    onclick: () => { menu.hidePopover(); entry.run(); },
  }, entry.label)));
  const menu = h("div", { class: "menu", role: "menu", popover: "auto", "aria-label": label }, items);
  (anchor.closest("dialog") ?? document.body).append(menu);
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    const held = menu.contains(document.activeElement);
    menu.remove();
    anchor.setAttribute("aria-expanded", "false");
    if (held || document.activeElement === document.body) anchor.focus();
  });
  menu.addEventListener("keydown", (event) => move(menu, event));
  anchor.setAttribute("aria-expanded", "true");
  menu.showPopover();
  const place = anchor.getBoundingClientRect();
  const size = menu.getBoundingClientRect();
  menu.style.left = `${Math.max(4, Math.min(place.left, innerWidth - size.width - 4))}px`;
  menu.style.top = `${place.bottom + size.height + 4 > innerHeight ? Math.max(4, place.top - size.height - 2) : place.bottom + 2}px`;
  menu.querySelector("button:not(:disabled)")?.focus();
  return menu;
}

function move(menu, event) {
  const items = [...menu.querySelectorAll("button:not(:disabled)")];
  const here = items.indexOf(document.activeElement);
  const next = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: items.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  items[(next + items.length) % items.length]?.focus();
}
