"""A ZenFlux client's ears, written from the protocol alone: what was said, and whether it was said in order."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson

ENDS = ("session_end",)
ENVELOPE = {"event_uuid", "seq", "type", "session_id", "conversation_id", "timestamp", "data"}
FIELD = {"text": "text", "thinking": "thinking", "tool_use": "partial", "server_tool_use": "partial",
         "tool_result": "content"}


@dataclass
class Message:
    """One message_start … message_stop."""

    id: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False

    def note(self, kind: str) -> Any:
        return next((note["content"] for note in self.notes if note["type"] == kind), None)


@dataclass
class Run:
    """One session_start … session_end."""

    session_id: str
    conversation_id: str
    messages: list[Message] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)
    status: str | None = None
    deltas: int = 0

    @property
    def blocks(self) -> list[dict[str, Any]]:
        return [block for message in self.messages for block in message.blocks]

    def words(self, kind: str) -> list[str]:
        return [block[FIELD[kind]] for block in self.blocks if block["type"] == kind]

    def other(self, name: str) -> list[Any]:
        return [data for event, data in self.others if event == name]


def payloads(frames: Iterable[bytes]) -> list[dict[str, Any]]:
    """The envelopes of socket frames, checked against their frames."""
    found = []
    for frame in map(orjson.loads, frames):
        assert set(frame) == {"type", "event", "payload", "seq"}, frame
        assert frame["type"] == "event"
        assert frame["event"] == frame["payload"]["type"]
        assert frame["seq"] == frame["payload"]["seq"]
        found.append(frame["payload"])
    return found


def events(stream: bytes) -> list[dict[str, Any]]:
    """The envelopes of a server-sent stream, which ends with its done."""
    assert b"\r" not in stream
    blocks = [block for block in stream.decode().split("\n\n") if block]
    assert blocks.pop() == 'event: done\ndata: {"type":"done","data":{"type":"done"}}'
    assert all(block.startswith("data: ") for block in blocks), blocks
    read = [orjson.loads(block.removeprefix("data: ")) for block in blocks]
    return [one for one in read if one["type"] != "ping"]


def read_stream(envelopes: list[dict[str, Any]]) -> list[Run]:
    """What was heard of each run; nothing may be out of its place."""
    runs: list[Run] = []
    seen: set[str] = set()
    for envelope in envelopes:
        assert set(envelope) >= ENVELOPE, envelope
        assert isinstance(envelope["data"], dict)
        assert str(UUID(envelope["event_uuid"])) == envelope["event_uuid"] not in seen
        seen.add(envelope["event_uuid"])
        if envelope["type"] == "session_start":
            assert not runs or runs[-1].status is not None, "a run began inside another"
            runs.append(Run(envelope["session_id"], envelope["conversation_id"]))
            number, time = 0, ""
        assert envelope["seq"] == number + 1, f"{number} is followed by {envelope['seq']}"
        assert envelope["timestamp"] >= time, "time went back"
        number, time = envelope["seq"], envelope["timestamp"]
        run = runs[-1]
        assert (run.session_id, run.conversation_id) == (envelope["session_id"], envelope["conversation_id"])
        assert run.status is None, f"{envelope['type']} after session_end"
        _hear(run, envelope, envelope["type"], envelope["data"])
    assert not runs or runs[-1].status is not None, "the stream was torn"
    return runs


def _hear(run: Run, envelope: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
    message = run.messages[-1] if run.messages else None
    speaking = message is not None and not message.stopped
    block = message.blocks[-1] if message and message.blocks and speaking and "open" in message.blocks[-1] else None
    number = envelope["seq"]
    assert {1: "session_start", 2: "conversation_start"}.get(number, kind) == kind
    if number == 3:
        assert kind in ("message_start", "error", "session_stopped", "session_end", "conversation_delta",
                        "long_running_confirm", "rollback_options"), kind
    if kind == "message_start":
        assert not speaking, "a message began inside another"
        assert envelope["message"] == data["message"]
        assert envelope["message"]["id"] == data["message_id"] == envelope["message_id"]
        run.messages.append(Message(data["message_id"]))
    elif kind == "content_start":
        assert speaking
        assert block is None, "a block began inside another"
        assert data["index"] == len(run.blocks), "indexes grow over the run"
        message.blocks.append({**data["content_block"], "partial": "", "open": True})
    elif kind == "content_delta":
        assert block is not None
        assert data["index"] == len(run.blocks) - 1
        assert isinstance(data["delta"], str)
        block[FIELD[block["type"]]] += data["delta"]
        run.deltas += block["type"] != "tool_result"
    elif kind == "content_stop":
        assert block is not None
        assert data == {"index": len(run.blocks) - 1}
        del block["open"]
    elif kind == "message_delta":
        assert speaking, "a message_delta without a message"
        assert block is None
        assert set(data) == {"type", "content", "delta"}
        assert data["delta"]["type"] == data["type"]
        message.notes.append(data)
    elif kind == "message_stop":
        assert speaking
        assert block is None
        assert data == {}
        message.stopped = True
    elif kind == "session_end":
        assert not speaking, "the run ended inside a message"
        run.status = data["status"]
    else:
        assert block is None or kind == "conversation_delta"
        run.others.append((kind, data))
