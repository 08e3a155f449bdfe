"""Frames are numbered and named the same each time they are said, and differently from all others."""

from uuid import UUID

import orjson

import gateway.model as m
from adapters.zenflux.server.frame_writer import FrameWriter
from tests.support.dialect_tables import table

RECORD = m.Record(
    seq=9, at=1.5, session_id="sess_1", turn_id="turn_1",
    event=m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="x"),
)


def spoken(run_id: str = "turn_1", framing: str = "json") -> list[dict[str, object]]:
    voice = FrameWriter(table("zenflux").encoder("json"))
    voice.begin(run_id, framing)
    voice.reply_id = "msg_1"
    frames = [*voice.delta(RECORD, 0, "a", 1.5), *voice.event(RECORD), *voice.cue("stopped", RECORD, 2.5, index=0)]
    return [orjson.loads(frame.body)["payload"] for frame in frames]


def test_silence_has_no_number() -> None:
    assert [payload["seq"] for payload in spoken()] == [1, 2]
    assert [payload["type"] for payload in spoken()] == ["content_delta", "content_stop"]


def test_frames_have_ids_that_come_from_their_run() -> None:
    ids = [str(payload["event_uuid"]) for payload in spoken()]
    assert ids == [str(payload["event_uuid"]) for payload in spoken()]
    assert all(UUID(one).version == 4 for one in ids)
    others = [*spoken("turn_2"), *spoken(framing="sse")]
    assert len({*ids, *(str(payload["event_uuid"]) for payload in others)}) == 6


def test_frames_are_stamped_with_the_time_they_were_due() -> None:
    assert [payload["timestamp"] for payload in spoken()] == [
        "1970-01-01T00:00:01.500000", "1970-01-01T00:00:02.500000"]
