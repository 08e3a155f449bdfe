"""Reads JSON of upstream servers, leniently or with an error that names what is malformed: values, asks, pages."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.json_values import JsonObject, JsonValue, Steps, run_steps

MOST_TOKENS = 2**53
"""A count that is larger than every JSON number is none."""


def text(value: JsonValue) -> str:
    """A text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def optional_text(value: object) -> str | None:
    """A text that is not empty; None for anything else."""
    return value if isinstance(value, str) and value else None


def members(value: JsonValue) -> dict[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: JsonValue) -> list[dict[str, Any]]:
    """The objects of a list; none for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def require_object(value: object, what: str) -> JsonObject:
    """An object; `what` names it in the error if it is none."""
    if not isinstance(value, dict):
        raise BackendFailed(f"the server sent {what} that is not an object")
    return value


def require_objects(value: JsonValue, what: str) -> list[dict[str, Any]]:
    """A list of objects, which may be null; `what` names it in the error if it is none."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise BackendFailed(f"the server sent {what} that are not a list")
    return [require_object(one, f"one of {what}") for one in value]


def require_id(value: Mapping[str, object], what: str) -> str:
    """The id of an object; `what` names the object in the error if it has none."""
    found = optional_text(value.get("id"))
    if found is None:
        raise BackendFailed(f"the server sent {what} that has no id")
    return found


def read_count(value: Any) -> int:
    """A count; 0 if the value is not a number, is negative, or is too large."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < MOST_TOKENS else 0


def optional_count(value: object) -> int | None:
    """A count; None if the value is not a number."""
    return read_count(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def read_usage(counts: Mapping[str, JsonValue] | None) -> m.Usage:
    """Usage by the names of the model."""
    return m.Usage(**{name: read_count(count) for name, count in (counts or {}).items()})


def parse_timestamp(value: Any) -> float | None:
    """An ISO 8601 time in seconds since 1970, in UTC if it has no zone; None for anything else."""
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)")
"""A JSON escape: a surrogate pair, a lone surrogate, or any other escape."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
REPLACEMENT = r"\ufffd"
ESCAPES_PER_STEP = 16_384
"""The number of escapes that one step examines."""


def replace_lone_surrogates(json: str) -> str:
    """The JSON with U+FFFD instead of every lone surrogate."""
    return run_steps(replace_lone_surrogates_in_steps(json))


def replace_lone_surrogates_in_steps(json: str) -> Steps[str]:
    """`replace_lone_surrogates` in steps, so that the event loop can run in between."""
    if not _SURROGATE.search(json):
        return json
    pieces, start = list[str](), 0
    for number, found in enumerate(_ESCAPE.finditer(json), 1):
        if found[1]:
            pieces += json[start:found.start()], REPLACEMENT
            start = found.end()
        if number % ESCAPES_PER_STEP == 0:
            yield
    return "".join((*pieces, json[start:]))


def read_questions(rows: Iterable[Mapping[str, Any]]) -> tuple[m.Question, ...]:
    """Questions as a table has read them; what is asked may be missing.

    Picks go by number, so that every choice keeps its place, whatever it looks like.
    """
    return tuple(
        m.Question(
            question=one["question"] or "", header=one["header"], multi_select=one["multi_select"] is True,
            options=tuple(m.Choice(label=_label(choice["label"]), description=choice["description"])
                          for choice in one["options"] or ()),
        )
        for one in rows
    )


def _label(option: object) -> str:
    return str(option) if isinstance(option, str | int | float) else ""


def read_rollback(given: Mapping[str, object], task_id: str = "") -> m.RollbackAsk | None:
    """The states to choose from; `task_id` is for a server that does not name the task that failed."""
    options = given.get("options")
    if not isinstance(options, list) or not all(isinstance(option, dict) for option in options):
        return None
    return m.RollbackAsk(
        task_id=str(given.get("task_id") or task_id), options=tuple(options), error=optional_text(given.get("error")),
        reason=optional_text(given.get("reason")),
    )


def read_continuation(given: Mapping[str, object]) -> m.ContinuationAsk | None:
    """The ask whether a long turn is to continue; None if there is no message for people."""
    message, turn = given.get("message"), given.get("turn")
    if not isinstance(message, str):
        return None
    return m.ContinuationAsk(message=message, turn=turn if isinstance(turn, int) else 0)


MAX_PAGES = 100
"""So many pages of a list are read, unless a client wants another number."""
PAGE = 100
"""So many items are asked for at once."""
Item = TypeVar("Item")


async def read_pages(
    fetch: Callable[[str | None], Awaitable[tuple[Sequence[Item], str | None]]], *, most: int | None = None,
    is_last: Callable[[Item], bool] | None = None, max_pages: int = MAX_PAGES,
) -> list[Item]:
    """The items up to so many, or up to the last one that is wanted; `fetch` gets the name of a page, first None."""
    found: list[Item] = []
    page: str | None = None
    for _ in range(max_pages):
        items, page = await fetch(page)
        for item in items:
            found.append(item)
            if (most is not None and len(found) >= most) or (is_last is not None and is_last(item)):
                return found[:most]
        if page is None or not items:
            break
    return found


async def read_offsets(fetch: Callable[[int, int], Awaitable[Sequence[Item]]], most: int) -> list[Item]:
    """The items up to so many; `fetch` gets how many are wanted, and how many come before them."""
    found: list[Item] = []
    while len(found) < most:
        wanted = min(PAGE, most - len(found))
        items = await fetch(wanted, len(found))
        found += items
        if len(items) < wanted:
            break
    return found
