"""Recordings of ZenFlux: what a server may do that the examiners never ask for, and the wrong beside the right."""

from typing import Any
from uuid import uuid4

import orjson
import pytest

from tests.support.conformance.handmade_recordings import RecordingBuilder

Body = dict[str, Any]
SOCKET = "/api/v1/ws/chat"
NAMES = {"session_id": "s1", "conversation_id": "c1"}
NOW = "2026-01-01T00:00:00"


class Line:
    """A run on a socket, event by event."""

    def __init__(self) -> None:
        self.reel = RecordingBuilder("zenflux")
        self._count = 0
        request = {"type": "req", "id": "1", "method": "chat.send", "params": {"user_id": "u1", "message": "hello"}}
        self._frame(request, is_sent=True)
        self._frame({"type": "res", "id": "1", "ok": True, "payload": {"status": "streaming", **NAMES}})

    def _frame(self, body: Body, *, is_sent: bool = False) -> None:
        self.reel.frame(orjson.dumps(body).decode(), is_sent=is_sent, path=SOCKET)

    def event(self, kind: str, data: Body, **more: Any) -> None:
        self._count += 1
        about = {"event_uuid": str(uuid4()), "seq": self._count, "type": kind, "timestamp": NOW}
        payload = {**about, **NAMES, **more, "data": data}
        self._frame({"type": "event", "event": kind, "payload": payload, "seq": self._count})

    def open(self) -> None:
        self.event("session_start", {**NAMES, "user_id": "u1", "message_id": "m0", "timestamp": NOW})
        about = {"title": "New", "created_at": NOW, "updated_at": NOW, "metadata": {}}
        self.event("conversation_start", {"conversation_id": "c1", **about})

    def reply(self, reason: str = "end_turn") -> None:
        usage = {"input_tokens": 0, "output_tokens": 0}
        message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "model": "one"}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        self.event("message_start", {"type": "message_start", "message": message}, message_id="m1", message=message)
        self.event("content_start", {"index": 0, "content_block": {"type": "text", "text": ""}}, message_id="m1")
        self.event("content_delta", {"index": 0, "delta": "Well."}, message_id="m1")
        self.event("content_stop", {"index": 0}, message_id="m1")
        self.event("message_delta", {"type": "usage", "content": {"stop_reason": reason}}, message_id="m1")
        self.event("message_stop", {}, message_id="m1")

    def end(self) -> set[str]:
        self.event("session_end", {"session_id": "s1", "status": "completed", "duration_ms": 5})
        return set(self.reel.failed())


@pytest.mark.parametrize(
    ("reason", "is_wrong"), [("end_turn", False), ("max_tokens", False), ("refusal", False), ("tool_use", True)]
)
def test_a_run_may_end_for_another_reason(reason: str, is_wrong: bool) -> None:
    """A reply that was cut by its limit did not end its turn; but no run ends with a call."""
    line = Line()
    line.open()
    line.reply(reason)
    assert ("ZF-EV-15" in line.end()) is is_wrong


@pytest.mark.parametrize(
    ("kind", "data", "is_wrong"),
    [
        ("long_running_confirm", {"turn": 1, "message": "Shall I go on?"}, False),
        ("rollback_options", {"task_id": "t1", "options": ["the last step"]}, False),
        ("conversation_delta", {"conversation_id": "c1", "title": "A name"}, True),
    ],
)
def test_something_may_be_asked_before_the_first_message(kind: str, data: Body, is_wrong: bool) -> None:
    """The life cycle has no place for what is asked; what is told has to wait for the message."""
    line = Line()
    line.open()
    line.event(kind, data)
    line.reply()
    assert ("ZF-SEQ-03" in line.end()) is is_wrong
