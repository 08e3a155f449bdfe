// The difference of two texts, line by line, for tools that change files.

import { h } from "./dom.js";

const PAIRS = [["old_string", "new_string"], ["old_text", "new_text"], ["old_str", "new_str"], ["old", "new"], ["before", "after"]];
const MOST = 600;

/** The difference that the arguments of a call describe, or null if they describe none. */
export function diffOfInput(input) {
  const pair = PAIRS.find(([one, other]) => typeof input?.[one] === "string" && typeof input?.[other] === "string");
  return pair ? diff(input[pair[0]], input[pair[1]]) : null;
}

/** A result that is a unified difference, with its lines coloured; null if it is none. */
export function diffOfText(text) {
  if (typeof text !== "string" || !/^(diff --git |--- |@@ )/.test(text) || !/^[+-]/m.test(text)) return null;
  return lines(text.split("\n").slice(0, MOST * 4).map((line) => [line[0] === "+" ? "+" : line[0] === "-" ? "-" : " ", line]));
}

function diff(one, other) {
  const [left, right] = [one.split("\n"), other.split("\n")];
  if (left.length > MOST || right.length > MOST) {
    return lines([...left.map((line) => ["-", `-${line}`]), ...right.map((line) => ["+", `+${line}`])]);
  }
  return lines(compared(left, right));
}

function compared(left, right) {
  const longest = Array.from({ length: left.length + 1 }, () => new Uint16Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      longest[i][j] = left[i] === right[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const found = [];
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    if (i < left.length && j < right.length && left[i] === right[j]) found.push([" ", ` ${left[i++]}`]), j += 1;
    else if (i < left.length && (j === right.length || longest[i + 1][j] >= longest[i][j + 1])) found.push(["-", `-${left[i++]}`]);
    else found.push(["+", `+${right[j++]}`]);
  }
  return found;
}

function lines(found) {
  const kinds = { "+": "ins", "-": "del", " ": "span" };
  return h("pre", { class: "diff" }, found.map(([kind, text]) => h(kinds[kind], { dir: "auto" }, `${text}\n`)));
}
