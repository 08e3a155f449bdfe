// What the page knows of the server: agents, dialects and what this key may do. Dialects get their colours in the order served.

import { get } from "./api.js";

export const facts = { agents: [], dialects: [], may: {}, version: "", role: "user" };

const HUES = 8;

export async function readFacts() {
  Object.assign(facts, await get("server"));
  return facts;
}

/** The colour of a dialect: 1 to 8; 0 is the canonical column's. */
export function hueOf(dialect) {
  const place = facts.dialects.findIndex((one) => one.name === dialect);
  return place < 0 ? 0 : (place % HUES) + 1;
}

export function dialectNames() {
  return facts.dialects.map((one) => one.name);
}

export function agentNamed(name) {
  return facts.agents.find((one) => one.name === name);
}
