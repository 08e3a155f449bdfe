"""The filters of the table language, and maps of words; every filter passes null on."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
import orjson

import gateway.model as m
from gateway.json_values import EncodedArray, read_exact_json

Filter = Callable[[Any], Any]
ANY_OTHER = "*"


class UnknownWord(ValueError):
    """A word that the table does not map."""

    def __init__(self, word: Any, known: Mapping[str, Any]) -> None:
        super().__init__(f"{word!r} is not one of {', '.join(known)}")
        self.word = word
        self.known = tuple(known)


@lru_cache(maxsize=256)  # several fields, frames and dialects need the same time
def iso(seconds: float | None) -> str | None:
    """Seconds since 1970 as `2026-01-31T12:00:00.000Z`."""
    if seconds is None:
        return None
    rounded = datetime.fromtimestamp(round(seconds, 3), UTC)
    return rounded.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def naive(seconds: float | None) -> str | None:
    """Seconds since 1970 as `2026-01-31T12:00:00.000000`: UTC without a zone."""
    if seconds is None:
        return None
    second, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(second)}.{micros:06d}"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def json_text(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


def written(value: Any) -> str | None:
    """A text as it is; anything else as JSON in a string."""
    return value if isinstance(value, str) else json_text(value)


def text(value: Any) -> str | None:
    """The text of a content; JSON for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        return "".join(part.text for part in value if isinstance(part, m.TextPart))
    return json_text(value)


def optional(value: Any) -> Any:
    """Marks a key that is left out if its value is null."""
    return value


FILTERS: dict[str, Filter] = {
    "iso": iso,
    "naive": naive,
    "ms": ms,
    "json": json_text,
    "written": written,
    "text": text,
    "optional": optional,
}
TIME_FILTERS = ("iso", "naive", "ms")


def parse_time(value: Any) -> float:
    """Seconds since the epoch, from ISO 8601 (UTC where it names no zone) or from a number of milliseconds."""
    if not isinstance(value, str):
        return float(value) / 1000
    moment = datetime.fromisoformat(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def parse_json_text(value: Any) -> Any:
    """The value that a text of JSON spells; what is no text stays as it is."""
    return read_exact_json(value) if isinstance(value, str) else value


def parse_written(value: Any) -> Any:
    """An object or a list that is written as JSON in a string; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return read_exact_json(value)
    except orjson.JSONDecodeError:
        return value


INVERSES: dict[str, tuple[str, Filter]] = {
    "iso": ("time", parse_time),
    "naive": ("time", parse_time),
    "ms": ("number", parse_time),
    "json": ("any", parse_json_text),
    "written": ("any", parse_written),
    "text": ("text", str),
}
"""By filter: the type of its value on the wire, and what gives back the value that was filtered."""
CONTENT_FILTER, PARTS_FILTER = "content", "parts"
"""Filters that use the table's `parts`: `content` keeps a string as it is, `parts` makes it a part."""


def word_filter(words: Mapping[str, Any]) -> Filter:
    """A lookup; `*` is for words that are not listed."""
    plain = {key: value for key, value in words.items() if key != ANY_OTHER}

    def look(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str) and value in plain:
            return plain[value]
        if ANY_OTHER in words:
            return words[ANY_OTHER]
        raise UnknownWord(value, plain)

    return look


def word_reader(meanings: Mapping[str, StrEnum]) -> Filter:
    """The member that a word stands for; a word that the table does not know stays as it is."""
    return lambda word: meanings.get(word, word)


def content_filters(spelled: Mapping[type[Any], Callable[[Any], Any] | None]) -> dict[str, Filter]:
    """The two filters that use `parts`; a kind that is mapped to None is left out."""

    def as_parts(value: Any) -> Any:
        if value is None:
            return None
        parts = (m.TextPart(text=value),) if isinstance(value, str) else value
        return [spell(part) for part in parts if (spell := spelled[type(part)]) is not None]

    def as_content(value: Any) -> Any:
        return str(value) if isinstance(value, str) else as_parts(value)

    return {CONTENT_FILTER: as_content, PARTS_FILTER: as_parts}


def enum_reader(enum: type[StrEnum]) -> Filter:
    """A canonical word as the enum member that it names."""
    return lambda value: None if value is None else enum(value)


ENCODED = (orjson.Fragment, EncodedArray)


def to_builtins(value: Any) -> Any:
    """Values that orjson does not know, as ones that it does; encoded JSON stays as it is."""
    return msgspec.to_builtins(value, str_keys=True, builtin_types=ENCODED)


def to_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, to_builtins)
    except TypeError:
        return to_json_slowly(value)


def to_json_slowly(value: Any) -> bytes:
    """The slow path, for values that orjson rejects: enum members as keys, huge integers, lone surrogates."""
    return json.dumps(to_builtins(value), separators=(",", ":")).encode()
