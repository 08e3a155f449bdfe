"""Two tables with what their code promises them, and records to say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from adapters.aap import DIALECT
from mappings.language import Table, Vocabulary, builtin_path, load_table

AAP = Vocabulary.of(DIALECT)


PLAIN = Vocabulary(
    cues={"mood.changed": ("mood", "card")},
    names={"block.delta": ("index",), "input.accepted.send_message": ("author",)},
    messages={"say": ("words",), "decide": ("id", "answer", "why")},
    objects={"card": ("title", "at", "body"), "reason": ("reason",)},
)
TABLES = Path(__file__).parent / "tables"


@pytest.fixture(scope="session")
def plain_words() -> Vocabulary:
    return PLAIN


@pytest.fixture(scope="session")
def plain_path() -> Path:
    return TABLES / "plain.yaml"


@pytest.fixture(scope="session")
def plain(plain_path: Path) -> Table:
    """A small complete table that uses every part of the language."""
    return load_table(plain_path, PLAIN)


@pytest.fixture(scope="session")
def aap_words() -> Vocabulary:
    return AAP


@pytest.fixture(scope="session")
def aap() -> Table:
    return load_table(builtin_path("aap"), AAP)


@pytest.fixture
def record() -> Callable[..., m.Record]:
    def make(event: m.AnyEvent, **placed: Any) -> m.Record:
        place = {"seq": 7, "at": 1767225600.25, "session_id": "ses_1", "turn_id": "turn_1"}
        return m.Record(event=event, **place | placed)

    return make
