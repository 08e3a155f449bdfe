"""Frames are numbered and named the same each time they are said, and differently from all others."""

from uuid import UUID

import orjson
from msgspec.structs import replace

import gateway.model as m
from adapters.zenflux.server.frame_writer import FrameWriter
from tests.support.dialect_tables import table

RECORD = m.Record(
    seq=9, at=1.5, session_id="sess_1", turn_id="turn_1",
    event=m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="x"),
)


def spoken(run_id: str = "turn_1", framing: str = "json") -> list[dict[str, object]]:
    writer = FrameWriter(table("zenflux").encoder("json"))
    writer.begin(replace(RECORD, turn_id=run_id), framing)
    writer.reply_id = "msg_1"
    delta = writer.delta(RECORD, 0, "a", 1.5)
    writer.event(RECORD)
    writer.cue("stopped", replace(RECORD, at=2.5), index=0)
    return [orjson.loads(frame.body)["payload"] for frame in (*delta, *writer.take())]


def test_silence_has_no_number() -> None:
    assert [payload["seq"] for payload in spoken()] == [1, 2]
    assert [payload["type"] for payload in spoken()] == ["content_delta", "content_stop"]


def test_frames_have_ids_that_come_from_their_run() -> None:
    ids = [str(payload["event_uuid"]) for payload in spoken()]
    assert ids == [str(payload["event_uuid"]) for payload in spoken()]
    assert all(UUID(one).version == 4 for one in ids)
    others = [*spoken("turn_2"), *spoken(framing="sse")]
    assert len({*ids, *(str(payload["event_uuid"]) for payload in others)}) == 6


def test_a_frame_waits_for_the_deltas_before_it() -> None:
    writer = FrameWriter(table("zenflux").encoder("json"), throttle=1.0)
    writer.begin(RECORD, "json")
    for at, text in enumerate(("a", "b", "c")):
        writer.merge_delta(0, text, 1.5 + at / 8)
    assert writer.throttle.deadline == 2.5
    assert len(writer.take()) == 1
    writer.cue("stopped", replace(RECORD, at=2.0), index=0)
    frames = [orjson.loads(frame.body)["payload"] for frame in writer.take()]
    assert [frame["type"] for frame in frames] == ["content_delta", "content_stop"]
    assert writer.take() == ()


def test_frames_are_stamped_with_the_time_they_were_due() -> None:
    assert [payload["timestamp"] for payload in spoken()] == [
        "1970-01-01T00:00:01.500000", "1970-01-01T00:00:02.500000"]
