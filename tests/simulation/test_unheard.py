"""The judge of open streams: whoever listens has heard the last thing that was stored, or the stream is broken."""

from unittest.mock import patch

from tests.prove.crash.history import NOW, ConnectionHistory, History
from tests.prove.simulation import unheard
from tests.prove.simulation.unheard import of_open_streams

TOLD = ("one", "two", "three")


def judged(
    *heard: str, after: str | None = None, head: int = 3, cut_off: tuple[str, ...] = (), stream: str = "cas",
) -> list[str]:
    """What is said of a connection to a session whose records are told as `TOLD`, one each."""
    history = History(logs={"s": TOLD}, tellings={("s", stream): TOLD})  # type: ignore[dict-item]
    hearing = ConnectionHistory("cas-1", "s", stream, heard, after)
    with patch.object(unheard, "expected_stream", lambda records, stream: list(records)):
        return [one.words for one in of_open_streams([hearing], {"s": head}, history, cut_off)]


def test_whoever_heard_the_last_thing_missed_nothing() -> None:
    assert judged(*TOLD) == []
    assert judged("three", after="two") == []
    assert judged(after="three") == []


def test_whoever_did_not_hear_the_last_thing_is_named() -> None:
    assert judged("one", "two") == ["cas-1 (cas) listens, and was never told 'three'"]
    assert judged(after="one") == ["cas-1 (cas) listens, and was never told 'three'"]


def test_what_came_after_the_connection_was_closed_need_not_be_heard() -> None:
    assert judged("one", "two", head=2) == []


def test_nothing_is_said_of_clients_whose_connection_is_dead_and_of_streams_of_one_turn() -> None:
    assert judged("one", cut_off=("cas-1",)) == []
    assert judged("one", stream="aap") == []
    assert judged(after=NOW) == []
