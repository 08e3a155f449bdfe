"""What one moment has of one session, as Redis keeps it."""

import gateway.model as m
from gateway.storage.log.redis.reader import decode_entry, encode_entry, is_same_record


def record(seq: int, event: m.SessionCreated | m.TurnStarted | m.BlockDelta | m.TurnEnded) -> m.Record:
    return m.Record(seq=seq, at=1.0, session_id="s", turn_id="t" if seq > 1 else None, event=event)


BEGUN = [
    record(1, m.SessionCreated(owner="ann", agent="demo")), record(2, m.TurnStarted(command_id="c")),
    record(3, m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="hi")),
]
ENDED = [record(4, m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))]


def test_an_entry_tells_the_script_where_it_goes_and_what_it_changes() -> None:
    session, token, after, upto, in_turn, owner, spine, deltas, *summary, count, words = encode_entry("s", "7", BEGUN)
    assert (session, token, after, upto, in_turn, owner, summary, count, words) == (
        "s", "7", 0, 3, 1, "ann", ["", 0, 0, 0], 1, "t")
    assert isinstance(spine, bytes) and isinstance(deltas, bytes)
    assert [one.seq for one in decode_entry(spine)] == [1, 2] and [one.seq for one in decode_entry(deltas)] == [3]


def test_what_ends_a_turn_is_told_and_what_says_nothing_of_it_is_not() -> None:
    assert encode_entry("s", "7", ENDED)[4:6] == [0, ""]
    assert encode_entry("s", "7", BEGUN[2:])[4:6] == ["", ""]


def test_an_entry_is_read_back_in_order() -> None:
    entry = encode_entry("s", "7", [*BEGUN, *ENDED])
    spine, deltas = entry[6], entry[7]
    assert isinstance(spine, bytes) and isinstance(deltas, bytes)
    found = decode_entry(spine + deltas)
    assert all(is_same_record(ours, theirs) for ours, theirs in zip([*BEGUN, *ENDED], found, strict=True))
    assert not is_same_record(found[0], found[1])
