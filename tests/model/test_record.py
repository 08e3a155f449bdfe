"""An event in its place."""

import msgspec
import pytest

import gateway.model as m

DELTA = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="grüß dich\n\u2028")


def test_a_record_survives_the_log() -> None:
    record = m.Record(seq=7, at=1.25, session_id="sess_ab", turn_id="turn_1", scope_id="child", event=DELTA)
    assert m.decode_record(m.encode_record(record)) == record


def test_the_id_of_an_event_comes_from_its_record() -> None:
    first = m.Record(seq=7, at=1.0, session_id="sess_ab", event=DELTA)
    assert first.event_id == "evt_ab_7"
    assert m.decode_record(m.encode_record(first)).event_id == first.event_id


def test_an_event_nobody_knows_is_not_read() -> None:
    with pytest.raises(msgspec.ValidationError):
        m.decode_record(b'{"seq":1,"at":1,"session_id":"s","event":{"type":"block.exploded"}}')
