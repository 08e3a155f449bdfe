"""A stream is right only if it is word for word what the agent says."""

import pytest

from bench.measure import BenchFailure
from bench.protocols import AapProtocol, burst, slow

AAP = AapProtocol()
START = b": open\n\nevent: turn_start\ndata: {}\n\n"
STOP = b'event: turn_stop\ndata: {"stopReason":"end_turn"}\n\n'


def deltas(*said: str) -> bytes:
    return b"".join(b'event: text_delta\ndata: {"delta":"%s"}\n\n' % word.encode() for word in said)


REPLY = ("You ", "said: ", "(nothing)")


def test_the_whole_talk_is_right() -> None:
    AAP.check(START + deltas("word ", "word ", *REPLY) + STOP, burst(2))


def test_a_ping_in_between_is_no_event() -> None:
    AAP.check(START + deltas("1 ") + b": ping\n\n" + deltas("2 ", *REPLY) + STOP, slow(2))


@pytest.mark.parametrize(("body", "said"), [
    (START + deltas("word ", *REPLY) + STOP, "4 deltas came, not 5"),
    (START + deltas("word ", "word ", "word ", *REPLY) + STOP, "6 deltas came, not 5"),
    (START + deltas("word ", "ward ", *REPLY) + STOP, "do not add up"),
    (START + deltas("word ", "word ", *REPLY), "not one turn_start"),
    (START + START + deltas("word ", "word ", *REPLY) + STOP, "not one turn_start"),
    (deltas("word ") + START + deltas("word ", *REPLY) + STOP, "begin and end"),
    (START + deltas("word ", "word ", *REPLY) + STOP.replace(b"end_turn", b"error"), "begin and end"),
    (START + b"event: text_delta\ndata: {}\n\n", "without delta"),
])
def test_anything_else_is_told(body: bytes, said: str) -> None:
    with pytest.raises(BenchFailure, match=said):
        AAP.check(body, burst(2))


def test_a_body_is_cut_into_its_events() -> None:
    body = START + deltas("a", "b") + STOP
    events = AAP.events(body)
    assert len(events) == 5
    assert b"".join(events) == body
