"""The closed list of filters, and maps of words; every one of them lets null pass."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from gateway.model import TextPart

from .jsonio import to_json

Filter = Callable[[Any], Any]
OTHERWISE = "*"


class UnknownWord(ValueError):
    """A word came that the table does not map."""

    def __init__(self, word: Any, known: Mapping[str, Any]) -> None:
        super().__init__(f"{word!r} is not one of {', '.join(known)}")
        self.word = word
        self.known = tuple(known)


@lru_cache(maxsize=256)  # the same moment is spelled in several fields, frames and dialects
def iso(seconds: float | None) -> str | None:
    """Seconds since the epoch as `2026-01-31T12:00:00.000Z`."""
    if seconds is None:
        return None
    rounded = datetime.fromtimestamp(round(seconds, 3), UTC)
    return rounded.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def naive(seconds: float | None) -> str | None:
    """Seconds since the epoch as `2026-01-31T12:00:00.000000`: UTC, and without saying so."""
    if seconds is None:
        return None
    second, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(second)}.{micros:06d}"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


def json(value: Any) -> str | None:
    return None if value is None else to_json(value).decode()


def text(value: Any) -> str | None:
    """The words of a content; of anything else its JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple | list):
        return "".join(part.text for part in value if isinstance(part, TextPart))
    return json(value)


def optional(value: Any) -> Any:
    """Says nothing here: a key whose value it filters is left out where the value is null."""
    return value


FILTERS: dict[str, Filter] = {"iso": iso, "naive": naive, "ms": ms, "json": json, "text": text, "optional": optional}
TIMES = ("iso", "naive", "ms")
CONTENT, PARTS = "content", "parts"
"""Spelled by the table's own `parts`: `content` keeps a bare string as it is, `parts` makes it a part."""


def word_map(words: Mapping[str, Any]) -> Filter:
    """A look-up; `*` catches what is not listed."""
    plain = {key: value for key, value in words.items() if key != OTHERWISE}

    def look(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, str) and value in plain:
            return plain[value]
        if OTHERWISE in words:
            return words[OTHERWISE]
        raise UnknownWord(value, plain)

    return look


def content_filters(spelled: Mapping[type[Any], Callable[[Any], Any] | None]) -> dict[str, Filter]:
    """The two filters that spell parts; a kind spelled None is left out."""

    def as_parts(value: Any) -> Any:
        if value is None:
            return None
        parts = (TextPart(text=value),) if isinstance(value, str) else value
        return [spell(part) for part in parts if (spell := spelled[type(part)]) is not None]

    def as_content(value: Any) -> Any:
        return str(value) if isinstance(value, str) else as_parts(value)

    return {CONTENT: as_content, PARTS: as_parts}


def enum_reader(enum: type[StrEnum]) -> Filter:
    """A word of the house, as the member it names."""
    return lambda value: None if value is None else enum(value)
