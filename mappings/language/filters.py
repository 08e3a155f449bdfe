"""The filters of the table language, and maps of words; every filter passes null on."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

import msgspec
import orjson

import gateway.model as m
from gateway.json_values import EncodedArray, JsonValue, read_exact_json

from .expressions import AS, EACH, FITTING

Filter = Callable[[Any], Any]
ANY_OTHER = "*"


class UnknownWord(ValueError):
    """A word that the table does not map."""

    def __init__(self, word: object, known: Mapping[str, JsonValue]) -> None:
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


def json_text(value: JsonValue) -> str | None:
    return None if value is None else to_json(value).decode()


def written(value: JsonValue) -> str | None:
    """A text as it is; anything else as JSON in a string."""
    return value if isinstance(value, str) else json_text(value)


def text(value: Any) -> str | None:
    """The text of a content; JSON for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        return "".join(part.text for part in value if isinstance(part, m.TextPart))
    return json_text(value)


def optional(value: JsonValue) -> object:
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


def parse_json_text(value: JsonValue) -> object:
    """The value of a string that contains JSON; any other value stays unchanged."""
    return read_exact_json(value) if isinstance(value, str) else value


def parse_written(value: JsonValue) -> object:
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


def word_filter(words: Mapping[str, JsonValue]) -> Filter:
    """A lookup; `*` is for words that are not listed."""
    plain = {key: value for key, value in words.items() if key != ANY_OTHER}

    def look(value: object) -> JsonValue:
        if value is None:
            return None
        if isinstance(value, str) and value in plain:
            return plain[value]
        if ANY_OTHER in words:
            return words[ANY_OTHER]
        raise UnknownWord(value, plain)

    return look


def word_reader(meanings: Mapping[str, StrEnum], otherwise: StrEnum | None = None) -> Filter:
    """The member that a word stands for; a word that the table does not know is `otherwise`, or stays as it is."""
    if otherwise is not None:
        return lambda word: meanings.get(word, otherwise)
    return lambda word: meanings.get(word, word)


def content_filters(spelled: Mapping[type[object], Callable[[object], object] | None]) -> dict[str, Filter]:
    """The two filters that use `parts`; a kind that is mapped to None is left out, a block that is spelled stays."""

    def look(kind: type[object]) -> Callable[[Any], Any] | None:
        return kind if kind is dict else spelled[kind]

    def as_parts(value: Any) -> Any:
        if value is None:
            return None
        parts = (m.TextPart(text=value),) if isinstance(value, str) else value
        return [spell(part) for part in parts if (spell := look(type(part))) is not None]

    def as_content(value: JsonValue) -> object:
        return str(value) if isinstance(value, str) else as_parts(value)

    return {CONTENT_FILTER: as_content, PARTS_FILTER: as_parts}


def read_word(words: Mapping[str, JsonValue]) -> Filter:
    """The value that a word of a client stands for. Raises `UnknownWord`."""

    def read(word: object) -> Any:
        if isinstance(word, str) and word in words:
            return words[word]
        raise UnknownWord(word, words)

    return read


def write_word(words: Mapping[str, JsonValue]) -> Filter:
    """The first word that stands for a value. Raises `UnknownWord`."""

    def write(value: Any) -> Any:
        if value is None:
            return None
        for word, meaning in words.items():
            if meaning == value and type(meaning) is type(value):
                return word
        raise UnknownWord(value, words)

    return write


def row_filters(rows: Mapping[str, Callable[[Any, Any, Any], Any]], names: Iterable[str]) -> dict[str, Filter]:
    """`each row`, `fitting row` and `as row` for every row of `objects`; what is encoded already stays as it is."""

    def write(name: str) -> tuple[Filter, Filter]:
        def as_row(value: JsonValue) -> object:
            return value if value is None or isinstance(value, ENCODED) else rows[name](None, None, bindings_of(value))

        def each_row(value: Any) -> Any:
            return value if value is None or isinstance(value, ENCODED) else [as_row(item) for item in value]

        return each_row, as_row

    found: dict[str, Filter] = {}
    for name in names:
        found[f"{EACH} {name}"], found[f"{AS} {name}"] = write(name)
        found[f"{FITTING} {name}"] = found[f"{EACH} {name}"]
    return found


def bindings_of(subject: Any) -> Mapping[str, Any]:
    """The fields of a struct or a dataclass by their names; a mapping is what it is."""
    if isinstance(subject, Mapping):
        return subject
    names = subject.__struct_fields__ if isinstance(subject, msgspec.Struct) else [f.name for f in fields(subject)]
    return {name: getattr(subject, name) for name in names}


def enum_reader(enum: type[StrEnum]) -> Filter:
    """A canonical word as the enum member that it names."""
    return lambda value: None if value is None else enum(value)


ENCODED = (orjson.Fragment, EncodedArray)


def to_builtins(value: JsonValue) -> Any:
    """Values that orjson does not know, as ones that it does; encoded JSON stays as it is."""
    return msgspec.to_builtins(value, str_keys=True, builtin_types=ENCODED)


def to_json(value: JsonValue) -> bytes:
    try:
        return orjson.dumps(value, to_builtins)
    except TypeError:
        return to_json_slowly(value)


def to_json_slowly(value: JsonValue) -> bytes:
    """The slow path, for values that orjson rejects: enum members as keys, huge integers, lone surrogates."""
    return json.dumps(to_builtins(value), separators=(",", ":")).encode()
