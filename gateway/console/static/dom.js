// Elements are made here and only here. There is no way from a string to markup: every string becomes a text node.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: h("button", {class: "quiet", onclick: send, "aria-label": t("send")}, "Send"). */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) set(element, name, value);
  element.append(...solid(children));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...solid(children));
  return element;
}

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
  else if (name === "vars") for (const [key, one] of Object.entries(value)) element.style.setProperty(`--${key}`, one);
  else element.setAttribute(name, value === true ? "" : value);
}

function solid(children) {
  return children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false && one !== "")
    .map((one) => (typeof one === "number" ? String(one) : one));
}

/** Put these children in the place of the old ones. */
export function fill(element, ...children) {
  element.replaceChildren(...solid(children));
  return element;
}

/** Text from an agent or a client: isolated, so that its direction marks change nothing outside of it. */
export function foreign(text, props = {}) {
  return h("bdi", props, text);
}

export function isWebAddress(address) {
  try {
    return ["http:", "https:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}

/** A link to somewhere else, or the bare text if the address is not one of the web. */
export function link(address, text = address) {
  if (!isWebAddress(address)) return foreign(text);
  return h("a", { href: address, target: "_blank", rel: "noopener noreferrer nofollow", dir: "auto" }, text);
}

const PATHS = {
  plus: "M8 3v10M3 8h10",
  stop: "M4 4h8v8H4z",
  send: "M2.5 8L13 3l-3 10-2.5-4z",
  clip: "M11.5 6.5L7 11a2 2 0 01-3-3l5-5a3 3 0 014 4l-5 5",
  slash: "M10 3L6 13",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  left: "M10 4L6 8l4 4",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  first: "M4 3v10M12 3L6 8l6 5",
  last: "M12 3v10M4 3l6 5-6 5",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM3 10V3h7",
  search: "M7 11.5a4.5 4.5 0 110-9 4.5 4.5 0 010 9zM10.5 10.5L14 14",
  aside: "M2.5 3h11v10h-11zM6.5 3v10",
  upload: "M8 10V3M5 5.5l3-3 3 3M3 11v2h10v-2",
  link: "M6.5 9.5l3-3M5 7L3.5 8.5a2.5 2.5 0 003.5 3.5L8.5 10.5M11 9l1.5-1.5A2.5 2.5 0 009 4L7.5 5.5",
  up: "M4 10l4-4 4 4",
  sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  gear: "M2 4h7M13 4h1M11 2.5v3M2 8h2M8 8h6M6 6.5v3M2 12h6M12 12h2M10 10.5v3",
  check: "M3 8.5L6.5 12 13 4.5",
  back: "M9 3L4 8l5 5M4 8h10",
};

export function icon(name) {
  return svg("svg", { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true", focusable: "false" },
    svg("path", { d: PATHS[name] }));
}

/** A button with an icon, and its name for those who do not see the icon. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props },
    icon(name));
}

/** A wait that is not longer than one frame, so that many changes are drawn once. */
export function frame(work) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const run = () => { asked = false; work(); };
    // A page in the background gets no frames; what it shows must be right when it comes back.
    if (document.hidden) setTimeout(run, 100);
    else requestAnimationFrame(run);
  };
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = h("textarea", { class: "off-screen" });
    box.value = text;
    (document.querySelector("dialog[open]") ?? document.body).append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}
