"""Which session a frame belongs to."""

from gateway.ports.remote import ParsedFrame
from gateway.translate.sessions import SessionFinder


def test_what_a_frame_says_of_itself() -> None:
    sorter = SessionFinder()
    assert sorter.session_of("1", ParsedFrame("x", {"session_id": "a"})) == "a"
    assert sorter.session_of("1", ParsedFrame("x", {"payload": {"session_id": "b"}})) == "b"
    assert sorter.session_of("2", ParsedFrame("x", {"params": {"conversationId": "c"}})) == "c"
    assert sorter.session_of("3", ParsedFrame("POST /x/sessions/d/turns", {})) == "d"
    assert sorter.session_of("4", ParsedFrame("POST /x/sessions", {})) is None


def test_a_frame_without_a_name_goes_with_the_one_before() -> None:
    sorter = SessionFinder()
    assert sorter.session_of("1", ParsedFrame("x", {})) is None
    sorter.session_of("1", ParsedFrame("x", {"session_id": "a"}))
    assert sorter.session_of("1", ParsedFrame("x", ["no", "object"])) == "a"
    assert sorter.session_of("2", ParsedFrame("x", {})) is None


def test_the_durable_name_counts_for_more() -> None:
    sorter = SessionFinder()
    assert sorter.session_of("1", ParsedFrame("x", {"session_id": "run_1", "conversation_id": "c"})) == "c"
    assert sorter.session_of("1", ParsedFrame("x", {"session_id": "run_2"})) == "c"


def test_what_is_like_no_id_is_none() -> None:
    assert SessionFinder().session_of("1", ParsedFrame("x", {"session_id": "a b\n"})) is None
    assert SessionFinder().session_of("1", ParsedFrame("x", {"session_id": 7})) is None
