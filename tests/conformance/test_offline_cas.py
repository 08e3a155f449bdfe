"""Recordings of CAS: what a server may do that the examiners never ask for, and the wrong beside the right."""

from collections.abc import Iterable
from typing import Any

import pytest

from conformance.offline.recording import Exchange
from tests.support.conformance.handmade_recordings import RecordingBuilder

Body = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
SESSION = "/sessions/sess_1"
USAGE = {
    "input_tokens": 1, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
}  # fmt: skip


class Story:
    """A stream of a session, and the posts that bring its events about."""

    def __init__(self) -> None:
        self.reel = RecordingBuilder("cas")
        self.stream: Exchange = self.reel.open("GET", f"{SESSION}/events/stream")
        self._count = 0

    def event(self, kind: str, turn: str, **more: Any) -> Body:
        self._count += 1
        about = {"id": f"evt_{self._count}", "type": kind, "schema_version": "1.0", "session_id": "sess_1"}
        return {**about, "turn_id": turn, "created_at": NOW, "processed_at": NOW, **more}

    def say(self, turn: str, text: str = "hello") -> None:
        """A message is posted, and told."""
        event = self.event("user.message", turn, content=[{"type": "text", "text": text}])
        sent = {"events": [{"type": "user.message", "content": text}]}
        self.reel.ask("POST", f"{SESSION}/events", {"data": [event]}, sent=sent, status=202)
        self.reel.tell(self.stream, event["type"], event)

    def tell(self, kind: str, turn: str, **more: Any) -> str:
        event = self.event(kind, turn, **more)
        self.reel.tell(self.stream, kind, event)
        return str(event["id"])

    def idle(self, turn: str, **reason: Any) -> None:
        self.tell("session.status_idle", turn, status="idle", stop_reason=reason, usage=USAGE)

    def reply(self, turn: str, text: str = "Well.") -> None:
        """A turn from its start to its end."""
        self.tell("session.status_running", turn, status="running")
        self.message(turn, text)
        self.idle(turn, type="end_turn")

    def message(self, turn: str, text: str, pieces: Iterable[str] = ()) -> None:
        start = self.tell("span.model_request_start", turn, model="one")
        for kind in pieces:
            self.piece(kind, turn, text)
        if text:
            self.tell("agent.message", turn, content=[{"type": "text", "text": text}])
        done = {"model_request_start_id": start, "is_error": False, "model_usage": USAGE, "usage": USAGE}
        self.tell("span.model_request_end", turn, **done)

    def piece(self, kind: str, turn: str, text: str) -> None:
        more: dict[str, Body] = {
            "agent.message_start": {"message": {"id": "msg_1", "type": "message", "role": "assistant", "content": []}},
            "agent.content_block_delta": {"index": 0, "delta": {"type": "text_delta", "text": text}},
            "agent.message_stop": {},
        }
        if text or kind != "agent.content_block_delta":
            self.tell(kind, turn, **more[kind])


@pytest.mark.parametrize(("turn", "wrong"), [("turn_2", set()), ("turn_3", {"CAS-EV-10"})])
def test_a_turn_that_is_passed_over_ends_under_its_own_id(turn: str, wrong: set[str]) -> None:
    """A message while a turn waits ends that turn; what comes of the message still has one id."""
    story = Story()
    story.say("turn_1")
    story.tell("session.status_running", "turn_1", status="running")
    asked = story.tell("agent.custom_tool_use", "turn_1", name="lookup", input={})
    story.idle("turn_1", type="requires_action", event_ids=[asked])
    story.say("turn_2", "never mind")
    story.idle("turn_1", type="cancelled")
    story.reply(turn)
    assert set(story.reel.failed()) == wrong


def test_the_end_of_a_turn_that_was_over_is_not_told_again() -> None:
    story = Story()
    story.say("turn_1")
    story.reply("turn_1")
    story.say("turn_2")
    story.idle("turn_1", type="cancelled")
    story.reply("turn_2")
    assert {"CAS-EV-03", "CAS-EV-10"} <= set(story.reel.failed())


@pytest.mark.parametrize(("status", "is_wrong"), [(200, False), (409, True), (None, True)])
def test_the_stream_of_an_archived_session_may_end(status: int | None, is_wrong: bool) -> None:
    """Nothing comes after the archive; a turn that is over is no reason to end a stream."""
    story = Story()
    story.say("turn_1")
    story.reply("turn_1")
    if status is not None:
        story.reel.ask("POST", f"{SESSION}/archive", {"id": "sess_1"}, status=status)
    story.reel.close(story.stream)
    assert ("CAS-SSE-07" in story.reel.failed()) is is_wrong


@pytest.mark.parametrize(("text", "wrong"), [("", set()), ("Let me see.", {"CAS-SSE-09"})])
def test_a_message_that_only_calls_tools_is_no_message(text: str, wrong: set[str]) -> None:
    """Of what says something in pieces the whole follows; of what says nothing there is none."""
    raw = ("agent.message_start", "agent.content_block_delta", "agent.message_stop")
    story = Story()
    story.say("turn_1")
    story.tell("session.status_running", "turn_1", status="running")
    for kind in raw:
        story.piece(kind, "turn_1", text)
    story.message("turn_1", "Well.", raw)
    story.idle("turn_1", type="end_turn")
    assert {name for name in story.reel.failed() if name == "CAS-SSE-09"} == wrong
