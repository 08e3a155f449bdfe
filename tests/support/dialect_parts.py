"""The parts that tests need of each dialect: the modules of tests/support/dialects/<dialect>, found by looking.

A dialect that lacks a part is left out by whoever needs the part, and is named: `each` skips the dialect with a reason,
`dialects_with` prints the reason, and tests/contract/test_dialect_parts.py skips every part that is missing.
"""

import importlib
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gateway.ports import StreamOptions
from tests.support.dialect_tables import DIALECTS
from tests.support.dialect_tables import dialect as dialect_of

HOME = "tests.support.dialects"
PARTS = {
    "crash_client": "talks while servers die",
    "disk_client": "talks to a server that can store nothing for a while",
    "endless_server": "a server whose stream has a line without an end",
    "examination": "what is known of the reference server of the examiners",
    "hop_client": "talks to a gateway whose functions are counted",
    "leaving_requests": "requests that last as long as a turn",
    "message_ways": "ways to send a message that wait for a place on a stream",
    "pair_client": "says one thing and answers what it is asked",
    "read_back": "what a client reads of a conversation, and what an import of it loses",
    "rest_requests": "plain requests: create, say, read",
    "shared_resources": "makes, sees, changes and deletes the resources that dialects share",
    "translation": "what is known of translated streams and of recordings",
    "watched_frames": "what a client reads that watches a whole session",
}
"""What tests of all dialects need of each. Beside these a dialect may have `settings` and `stream_options`."""


def part(dialect: str, name: str) -> Any:
    """This module of the folder of a dialect."""
    return importlib.import_module(f"{HOME}.{dialect}.{name}")


def has_part(dialect: str, name: str) -> bool:
    """Whether the folder of a dialect has this module."""
    return find_spec(f"{HOME}.{dialect}") is not None and find_spec(f"{HOME}.{dialect}.{name}") is not None


def document(dialect: str, name: str) -> Path:
    """A file of the folder of a dialect that is not a module."""
    places = [Path(folder) / name for folder in importlib.import_module(f"{HOME}.{dialect}").__path__]
    return next((place for place in places if place.is_file()), places[0])


def reason_without(dialect: str, name: str) -> str:
    """Why a dialect is left out."""
    return f"{dialect} is left out: there is no {HOME.replace('.', '/')}/{dialect}/{name}.py"


def dialects_with(name: str, tell: Callable[[str], object] = lambda line: print(line, file=sys.stderr)) -> list[str]:
    """The dialects that have this part; why each of the others is left out is told."""
    for dialect in DIALECTS:
        if not has_part(dialect, name):
            tell(reason_without(dialect, name))
    return [dialect for dialect in DIALECTS if has_part(dialect, name)]


def each(name: str, *, of: Iterable[str] = DIALECTS) -> list[Any]:
    """The dialects as parameters of a test; one without this part is skipped, and the summary says why."""
    return [pytest.param(dialect, id=dialect, marks=skipped(dialect, name)) for dialect in of]


def skipped(dialect: str, *names: str) -> list[pytest.MarkDecorator]:
    """The mark that skips a test of this dialect if it lacks one of these parts."""
    missing = [name for name in names if not has_part(dialect, name)]
    return [pytest.mark.skip(reason=reason_without(dialect, name)) for name in missing[:1]]


def quick_settings() -> dict[str, dict[str, Any]]:
    """Settings for all dialects with which tests need not wait long; most dialects need none."""
    return {name: dict(part(name, "settings").QUICK) if has_part(name, "settings") else {} for name in DIALECTS}


def live_options(name: str) -> StreamOptions:
    """The options of a stream that is read while it happens: the default ones, unless the dialect says others."""
    if not has_part(name, "stream_options"):
        return dialect_of(name).default_options
    live: StreamOptions = part(name, "stream_options").LIVE
    return live
