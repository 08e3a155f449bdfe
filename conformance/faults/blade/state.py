"""The state of the Blade reference server: sessions, turns, open questions; and how it refuses."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

import orjson

from conformance.faults.blade.script import Move

Body = dict[str, Any]
BodyChange = Callable[[Any], Any]
COMPACTION = (
    "compaction_id", "summary_preview", "summary_full", "archived_count", "tokens_before", "tokens_after",
    "saved_ratio", "trigger", "failure_reason",
)  # fmt: skip


def copied(body: Any) -> Any:
    """A body that can be changed without changing the other; what a server says is JSON."""
    return orjson.loads(orjson.dumps(body))


def now() -> str:
    return f"{datetime.now(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def mint(prefix: str) -> str:
    return f"{prefix}_{uuid4().hex}"


class Refusal(Exception):
    """A request is answered with this status and these words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class Paused(Exception):
    """The loop waits for an answer."""


class Broken(Exception):
    """The agent broke."""


@dataclass
class Pending:
    """An open question: its call, its turn, and what is to be done after the answer."""

    call: Body
    turn: Body
    rest: list[Move]
    forks: list[tuple[Body, Body, list[Move]]] = field(default_factory=list)

    @property
    def calls(self) -> list[tuple[Body, Body]]:
        """The question and the forks that wait for its answer, each with its turn."""
        return [(self.turn, self.call), *((turn, call) for turn, call, _ in self.forks)]


@dataclass
class Session:
    """One conversation, with what is kept beside it."""

    fields: Body
    turns: list[Body] = field(default_factory=list)
    open: list[Body] = field(default_factory=list)
    pending: Pending | None = None
    task: asyncio.Task[Any] | None = None
    run: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    extra: Body | None = None
    patches: dict[str, int] = field(default_factory=dict)
    sent: list[tuple[str, Any]] = field(default_factory=list)
    passed_over: Pending | None = None

    @property
    def id(self) -> str:
        return str(self.fields["id"])

    @property
    def is_busy(self) -> bool:
        return self.run is not None

    def becomes(self, status: str) -> None:
        self.fields |= {"status": status, "updated_at": now()}


@dataclass
class State:
    """All that the server keeps, by id."""

    sessions: dict[str, Session] = field(default_factory=dict)
    shares: dict[str, str] = field(default_factory=dict)
    """The sessions that are shared, by their tokens."""
    memories: dict[str, Body] = field(default_factory=dict)
    keys: dict[str, Body] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """The plaintexts of the keys."""
    tasks: dict[str, Body] = field(default_factory=dict)
    runs: dict[str, list[Body]] = field(default_factory=dict)
    """The runs of each task."""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))


def new_session(given: Body, user: str) -> Session:
    """A session as the body of POST /api/sessions describes it."""
    wanted = ("solution_id", "biz_role_id", "model")
    return Session(
        {
            "id": mint("sess"),
            "intent": given["intent"],
            "status": "created",
            "created_at": now(),
            "updated_at": now(),
            "user_id": user,
            **{name: given.get(name) for name in wanted},
            "shared": False,
            "is_pinned": False,
            "memory_enabled": given.get("memory_enabled") is not False,
            "is_persistent": bool(given.get("is_persistent")),
            "replay_state": None,
        }
    )


def new_turn(session: Session, role: str, loop: str, parent: str | None, **more: Any) -> Body:
    """A turn that has only begun, entered into the history."""
    turn = {
        "id": mint("entry"),
        "sequence": len(session.turns),
        "turn_id": mint("turn"),
        "loop_id": loop,
        "kind": "message",
        "role": role,
        "status": "streaming" if role == "assistant" else "completed",
        "blocks": [],
        "tool_calls": [],
        "model": "reference-1" if role == "assistant" else None,
        "usage": {"input_tokens": 5, "output_tokens": 2} if role == "assistant" else None,
        "duration_ms": 1,
        "started_at": now(),
        "context_window": 200_000,
        "memory_refs": None,
        "parent_fork_tool_call_id": parent,
        **dict.fromkeys(COMPACTION),
        **more,
    }
    session.turns.append(turn)
    return turn


def block(kind: str, content: Any = None, call: Body | None = None) -> Body:
    """A content block, of a tool call or of none."""
    source = call or dict.fromkeys(("id", "tool_name", "display_name"))
    members = {"tool_call_id": source["id"], "tool_name": source["tool_name"], "display_name": source["display_name"]}
    return {"type": kind, "content": content, **members}
