// The console's API, with the key of this tab.

const KEY = "dragoman.key";
export const BASE = new URL("api/", new URL("../", import.meta.url));

export class ApiError extends Error {
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** What the page must know wherever it is: `locked` (a key is needed), `open` (a key was given). */
export const session = new EventTarget();

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
    session.dispatchEvent(new Event("open"));
  },
};

export function url(path, query = {}) {
  const found = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") found.searchParams.set(name, value);
  }
  return found;
}

/** A response of the API; raises ApiError with the server's own words if it is a refusal. */
export async function ask(path, { method = "GET", query, body, headers = {}, signal } = {}) {
  const given = { ...headers };
  if (key.get()) given.Authorization = `Bearer ${key.get()}`;
  const raw = body instanceof FormData || body instanceof Blob;
  if (body !== undefined && !raw) given["Content-Type"] = "application/json";
  const response = await fetch(url(path, query), {
    method, headers: given, signal, cache: "no-store", credentials: "omit",
    body: body === undefined || raw ? body : JSON.stringify(body),
  });
  if (response.ok) return response;
  const text = await response.text();
  let said;
  try {
    said = JSON.parse(text).error ?? {};
  } catch {
    said = {};
  }
  if (response.status === 401) session.dispatchEvent(new Event("locked"));
  throw new ApiError(response.status, said.message ?? said ?? text.slice(0, 500), said.code);
}

export async function get(path, query, signal) {
  return (await ask(path, { query, signal })).json();
}

export async function post(path, body, query) {
  return answered(await ask(path, { method: "POST", body, query }));
}

export async function patch(path, body) {
  return answered(await ask(path, { method: "PATCH", body }));
}

export async function remove(path) {
  await ask(path, { method: "DELETE" });
}

async function answered(response) {
  return response.status === 204 ? null : response.json();
}

/** Save what an address of the API answers as a file; a link could not send the key. */
export async function download(path, query, name) {
  const response = await ask(path, { query });
  const place = URL.createObjectURL(await response.blob());
  const anchor = document.createElement("a");
  anchor.href = place;
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}
