"""The reference server's agent: directives become moves in the order written, the rest is repeated."""

from conformance.faults.script import Break, Speak
from conformance.faults.zenflux.chats import TYPES
from conformance.faults.zenflux.conversations import USUAL
from conformance.faults.zenflux.player import RunEvent
from conformance.faults.zenflux.script import Ask, Change, LongRun, Note, Rollback, Show, Use, moves
from conformance.faults.zenflux.streams import SPELLINGS
from conformance.faults.zenflux.variations import changed, without


def said(text: str) -> str:
    last = moves(text)[-1]
    assert isinstance(last, Speak)
    return "".join(last.pieces)


def test_words_are_repeated() -> None:
    assert [type(move) for move in moves("Hello there")] == [Speak]
    assert said("Hello there") == "You said: Hello there"
    assert said("/think Why /sing ?") == "You said:  Why /sing ?"


def test_directives_are_moves_in_order() -> None:
    text = "/think /tool clock /permit /ask /continue /rollback /title New /compact /image /fail"
    kinds = [type(move) for move in moves(text)]
    assert kinds == [Speak, Speak, Use, Use, Ask, LongRun, Rollback, Change, Change, Change, Show, Speak, Break, Speak]
    assert said("/title New and more") == "You said:  and more"


def test_annotations_are_notes() -> None:
    topics = [move.topic for move in moves("/annotate") if isinstance(move, Note)]
    assert topics == ["preface", "intent", "search", "knowledge", "recommended", "billing"]


def test_numbers_count_pieces() -> None:
    slow, burst = moves("/slow 12")[0], moves("/burst 200")[0]
    assert isinstance(slow, Speak)
    assert isinstance(burst, Speak)
    assert (len(slow.pieces), slow.pause > 0, len(burst.pieces), burst.pause) == (12, True, 200, 0)


def test_events_can_be_changed() -> None:
    event = RunEvent("error", {"a": 1, "b": 2})
    assert changed(event, a=3).data == {"a": 3, "b": 2}
    assert without(event, "a").data == {"b": 2}


def test_both_spellings_lead_to_the_same_names() -> None:
    assert set(SPELLINGS.values()) - {"message_id"} <= set(TYPES)
    assert USUAL["messages"] == 50
