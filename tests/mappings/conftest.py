"""Two tables with what their code promises them, and records to say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from mappings.language import Table, Vocabulary, builtin_path, load_table

OPTION = ("name", "title", "description", "choices", "default")
AAP = Vocabulary(
    cues={
        "whole.text": ("text",),
        "whole.thinking": ("text",),
        "image.delta": ("text",),
        "image.whole": ("text",),
        "child.asked": ("call",),
        "turn.waiting": (),
    },
    messages={
        "message.user": ("content",),
        "message.results": ("content", "results"),
        "message.tool": ("request_id", "content"),
        "message.tool_permission": ("request_id", "granted", "reason"),
        "answer.question": ("request_id", "custom", "said"),
        "answer.continuation": ("request_id", "proceed", "said"),
        "answer.rollback": ("request_id", "option", "said"),
        "turn.interrupt": (),
    },
    objects={
        "meta": ("agents",),
        "agent": ("name", "version", "title", "description", "tools", "options", "capabilities", "how_to_answer"),
        "tool": ("name", "title", "description", "parameters"),
        "option.text": OPTION,
        "option.secret": OPTION,
        "option.select": OPTION,
        "session": ("session_id", "agent", "tools"),
        "session.agent": ("name", "tools", "options"),
        "server_tool": ("name", "trust"),
        "sessions": ("sessions", "next"),
        "created": ("session_id",),
        "history.full": ("messages",),
        "history.compacted": ("messages",),
        "message.system": ("content",),
        "message.user": ("content",),
        "message.assistant": ("content",),
        "message.tool": ("call_id", "content"),
        "message.asked": ("calls",), "asked.call": ("call",), "asked.continuation": ("request_id", "ask"),
        "asked.rollback": ("request_id", "ask"),
        "turn": ("stop_reason", "messages"),
    },
)


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
