"""What scripts answer is read into values that say what it is."""

from gateway.storage.redis.replies import (
    Appended,
    Claim,
    OwnerUsage,
    Removed,
    Renewal,
    read_appended,
    read_claim,
    read_removed,
    read_renewal,
    read_session_ids,
)


def test_several_calls_of_append_are_read_in_order_and_the_last_one_counts_the_sessions() -> None:
    replies = [[1, [b"ok", b"7", b"ann", 120, -1]], [3, [b"fenced", b"4"], [b"ok", b"1", b"\xed\xb3\xbf", 9, 2]]]
    assert read_appended(replies) == (3, [
        Appended("ok", 7, OwnerUsage("ann", 120, None)), Appended("fenced", 4, None),
        Appended("ok", 1, OwnerUsage("\udcff", 9, 2)),
    ])


def test_a_claim_names_what_its_outcome_has() -> None:
    assert read_claim([b"yours", b"5", b"12", b"1"]) == Claim("yours", token="5", head=12)
    assert read_claim([b"held", b"a1b2"]) == Claim("held", owner="a1b2")
    assert [read_claim([word]).outcome for word in (b"gone", b"lapsed")] == ["gone", "lapsed"]


def test_the_other_replies() -> None:
    assert read_removed([b"ok", 4, b"ann", 0, 1]) == Removed("ok", 4, OwnerUsage("ann", 0, 1))
    assert read_removed([b"fenced", 4]) == Removed("fenced", 4, None)
    assert read_renewal([1, 0, 9, 1]) == Renewal(was_good=True, leads=False, session_count=9, is_to_drain=True)
    assert read_session_ids([b"s1", b"s2"]) == ["s1", "s2"]
