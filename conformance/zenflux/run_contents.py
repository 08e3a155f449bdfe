"""The contents of a run: its events folded into messages, blocks and notes, without judging their order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

from conformance.kit import expect


@dataclass(frozen=True)
class Event:
    """One event in its envelope, and the frame it came in if it came in one."""

    payload: Mapping[str, Any]
    frame_seq: int | None = None

    @cached_property
    def type(self) -> str:
        return str(self.payload["type"])

    @property
    def seq(self) -> int:
        return int(self.payload["seq"])

    @property
    def session_id(self) -> str:
        return str(self.payload["session_id"])

    @property
    def data(self) -> Mapping[str, Any]:
        found = self.payload.get("data")
        return found if isinstance(found, dict) else {}


@dataclass
class Block:
    """A content block as it grew."""

    index: int
    start: Mapping[str, Any]
    deltas: list[str] = field(default_factory=list)

    @property
    def type(self) -> str:
        return str(self.start["type"])

    @property
    def said(self) -> str:
        """What its deltas add up to."""
        return "".join(self.deltas)

    @property
    def input(self) -> Any:
        """A tool's input: what the deltas add up to, or what came at the start if there were none."""
        return expect.parsed(self.said, "what the deltas of a tool_use add up to") if self.said else self.start["input"]

    @property
    def content(self) -> Any:
        """A tool's result: at the start or in deltas."""
        start = self.start["content"]
        return start + self.said if isinstance(start, str) else start or self.said


@dataclass
class Message:
    """A message as it grew."""

    id: str | None
    blocks: list[Block] = field(default_factory=list)
    notes: list[Mapping[str, Any]] = field(default_factory=list)
    is_stopped: bool = False


def fold(events: Iterable[Event]) -> list[Message]:
    """The messages in these events; what comes before any message belongs to a nameless one."""
    messages: list[Message] = []
    for event in events:
        if event.type == "message_start":
            messages.append(Message(event.payload["message"]["id"]))
        elif event.type.startswith(("content_", "message_")):
            _grow(messages[-1] if messages else _nameless(messages), event)
    return messages


def _nameless(messages: list[Message]) -> Message:
    messages.append(Message(None))
    return messages[-1]


def _grow(message: Message, event: Event) -> None:
    match event.type:
        case "message_delta":
            message.notes.append(event.data)
        case "message_stop":
            message.is_stopped = True
        case "content_start":
            message.blocks.append(Block(event.data["index"], event.data["content_block"]))
        case "content_delta":
            same = [block for block in message.blocks if block.index == event.data["index"]]
            for block in same[-1:]:
                block.deltas.append(event.data["delta"])


def as_object(content: Any, what: str) -> dict[str, Any]:
    """An object, or the object in a JSON string: the specification shows both."""
    found = expect.parsed(content, what) if isinstance(content, str) else content
    expect.that(isinstance(found, dict), f"{what} to be an object, or one in a JSON string", content)
    return dict(found)


def plain(value: Any) -> str:
    """A value in one spelling for comparison."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
