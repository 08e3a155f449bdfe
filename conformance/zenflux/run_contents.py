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
    frame_event: str | None = None

    @cached_property
    def type(self) -> str:
        """The type in the envelope, or else the one in the frame."""
        told = self.payload.get("type")
        if isinstance(told, str) and told:
            return told
        owner = "ZF-ENV-04" if "type" in self.payload else "ZF-ENV-01"
        expect.that(self.frame_event is not None, "the type of an event", dict(self.payload), owner)
        return str(self.frame_event)

    @property
    def seq(self) -> int:
        told = self.payload.get("seq")
        expect.that(type(told) is int, f"a whole number as the seq of {self.type}", told, "ZF-ENV-03")
        return int(told or 0)

    @property
    def session(self) -> str | None:
        """The session that the envelope names, if it names one."""
        told = self.payload.get("session_id")
        return told if isinstance(told, str) and told else None

    @property
    def session_id(self) -> str:
        return str(self.payload["session_id"])

    @property
    def data(self) -> Mapping[str, Any]:
        found = self.payload.get("data")
        return found if isinstance(found, dict) else {}

    @property
    def message_id(self) -> str:
        """The id of the message that a message_start begins."""
        message = self.payload.get("message")
        told = message.get("id") if isinstance(message, dict) else None
        expect.that(isinstance(told, str) and bool(told), "message.id of message_start", message, "ZF-EV-11")
        return str(told)


@dataclass
class Block:
    """A content block as it grew."""

    index: int
    start: Mapping[str, Any]
    deltas: list[Any] = field(default_factory=list)

    @property
    def type(self) -> str:
        return str(self.start["type"])

    @property
    def said(self) -> str:
        """What its deltas add up to."""
        odd = [delta for delta in self.deltas if not isinstance(delta, str)]
        expect.that(not odd, "strings as the deltas of a block", odd, "ZF-EV-30")
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

    start: Event | None = None
    blocks: list[Block] = field(default_factory=list)
    notes: list[Mapping[str, Any]] = field(default_factory=list)
    is_stopped: bool = False

    @property
    def id(self) -> str | None:
        return self.start.message_id if self.start is not None else None


def fold(events: Iterable[Event]) -> list[Message]:
    """The messages in these events; what comes before any message belongs to a nameless one."""
    messages: list[Message] = []
    for event in events:
        if event.type == "message_start":
            messages.append(Message(event))
        elif event.type.startswith(("content_", "message_")):
            _grow(messages[-1] if messages else _nameless(messages), event)
    return messages


def _nameless(messages: list[Message]) -> Message:
    messages.append(Message())
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


def as_blocks(content: Any) -> list[dict[str, Any]] | None:
    """The blocks that a message keeps, a list or a list in a JSON string; None where it keeps a text.

    The specification says `文本 或 ContentBlock[]（JSON 数组）`: both readings of the second are right.
    """
    if isinstance(content, str) and content.lstrip().startswith("["):
        try:
            content = orjson.loads(content)
        except orjson.JSONDecodeError:
            return None
    is_list = isinstance(content, list) and all(isinstance(block, dict) and "type" in block for block in content)
    return content if is_list else None


def as_text(content: Any) -> str:
    """What a message keeps, as text: the text itself, or that of its blocks."""
    blocks = as_blocks(content)
    if blocks is None:
        return str(content)
    return "".join(block["text"] for block in blocks if block["type"] == "text")


def plain(value: Any) -> str:
    """A value in one spelling for comparison."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
