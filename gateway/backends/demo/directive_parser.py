"""Parses a message to the demo agent: its directives in order, and the text around them."""

import json
import re
from collections.abc import Callable
from typing import NamedTuple

import orjson

from gateway.json_values import JsonObject

MAX_PARSED_CHARS = 200_000
"""Only so many characters of a message are searched for directives."""
MAX_DELTAS = 1_000_000
"""The largest number of deltas that a directive may ask for."""


class Directive(NamedTuple):
    """One directive with its arguments."""

    name: str
    word: str | None = None
    input: JsonObject | None = None
    number: int | None = None


class ParsedMessage(NamedTuple):
    """The directives of a message, and its other text."""

    directives: tuple[Directive, ...]
    text: str


ParsedDirective = tuple[Directive, int] | None
"""A directive and the place where it ends; None if its arguments are missing."""


def parse_message(message: str) -> ParsedMessage:
    found: list[Directive] = []
    kept: list[str] = []
    at = 0
    for match in _DIRECTIVE.finditer(message, 0, MAX_PARSED_CHARS):
        parsed = ARGUMENT_PARSERS[match[1]](match[1], message, match.end()) if match.start() >= at else None
        if parsed is not None:
            kept.append(message[at:match.start()])
            found.append(parsed[0])
            at = _skip_space(message, parsed[1])
    kept.append(message[at:])
    return ParsedMessage(tuple(found), "".join(kept).strip())


# -- one parser per kind of arguments ---------------------------------------------------------------------------------

def _bare(name: str, message: str, at: int) -> ParsedDirective:
    return Directive(name), at


def _number(name: str, message: str, at: int) -> ParsedDirective:
    match = _NUMBER.match(message, at)
    return (Directive(name, number=min(int(match[1]), MAX_DELTAS)), match.end()) if match else (Directive(name), at)


def _line(name: str, message: str, at: int) -> ParsedDirective:
    match = _LINE.match(message, at)
    return (Directive(name, word=match[1].strip()), match.end()) if match else None


def _input(name: str, message: str, at: int, word: str | None = None) -> ParsedDirective:
    found = _object(message, at)
    return (Directive(name, word, found[0]), found[1]) if found else (Directive(name, word), at)


def _word_and_input(name: str, message: str, at: int) -> ParsedDirective:
    match = _WORD.match(message, at)
    return _input(name, message, match.end(), match[1]) if match else _input(name, message, at)


def _object(message: str, at: int) -> tuple[JsonObject, int] | None:
    """A JSON object that is the same after encoding and decoding: no NaN, no number that is too large."""
    start = _skip_space(message, at)
    if not message.startswith("{", start):
        return None
    try:
        value, end = _JSON.raw_decode(message, start)
        same = orjson.loads(orjson.dumps(value)) == value
    except (ValueError, TypeError, RecursionError):
        return None
    return (value, end) if same else None


def _skip_space(message: str, at: int) -> int:
    match = _SPACE.match(message, at)
    return match.end() if match else at


ARGUMENT_PARSERS: dict[str, Callable[[str, str, int], ParsedDirective]] = {
    **dict.fromkeys((
        "think", "permit", "parallel", "ask", "fork", "fork-ask", "continue", "rollback", "fail", "fail-start",
        "refuse", "max-tokens", "max-steps", "annotate", "bridge", "ui", "image", "plan", "card", "compact", "json",
        "provider-tool",
    ), _bare),
    **dict.fromkeys(("slow", "burst"), _number),
    "title": _line,
    "tool": _word_and_input,
    "client-tool": _input,
}
"""Every directive, and the parser of its arguments."""

_DIRECTIVE = re.compile(rf"(?<!\S)/({'|'.join(sorted(ARGUMENT_PARSERS, key=len, reverse=True))})(?!\S)")
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[ \t]+([0-9]{1,12})(?!\S)")
_LINE = re.compile(r"[ \t]+([^\n]*\S[^\n]*)")
_WORD = re.compile(r"[ \t]+([A-Za-z_][\w.:-]*)(?![^\s{])")
_JSON = json.JSONDecoder(parse_constant=float)
