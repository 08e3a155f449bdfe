// The place in the page, kept behind the # of the address: #/sessions/ID?view=wire&at=7.

/** The place that the address names: its path as a list, and its settings. */
export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? "") };
}

export function address(path, query = {}) {
  const settings = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== null));
  const text = path.map(encodeURIComponent).join("/");
  return `#/${text}${settings.size ? `?${settings}` : ""}`;
}

export function go(path, query) {
  location.hash = address(path, query);
}

/** Change the settings of the place without a new entry in the history. */
export function note(query) {
  const here = place();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) here.query.delete(name);
    else here.query.set(name, value);
  }
  history.replaceState(null, "", address(here.path, Object.fromEntries(here.query)));
}
