"""A refusal is excused by what happened to that client in that session, and by nothing else."""

import pytest

import gateway.model as m
from tests.prove.crash.history import GivenAnswer, History, Kind, SentMessage, Violation
from tests.prove.fleet.allowed_refusals import unexplained_refusals

BUSY = "blade-0: {'status': 'error', 'message': 'Session already has an active chat'}"


def refused(words: str = BUSY, session: str = "s") -> Violation:
    return Violation(Kind.STUCK, session, words)


def history(*said: tuple[str, bool], logged: str = "", session: str = "s") -> History:
    records = [
        m.Record(seq=seq, at=1.0, session_id=session, turn_id=f"t{seq}", event=m.InputAccepted(
            command_id=f"c{seq}", command=m.SendMessage(content=f"hello {words}")))
        for seq, words in enumerate(logged.split(), 1)
    ]
    return History(
        said=[SentMessage("blade-0", session, words, taken) for words, taken in said], logs={session: records}
    )


def test_who_was_told_nothing_of_a_message_that_runs_may_be_refused_the_next() -> None:
    told = history(("u1", False), ("u2", False), ("u3", False), ("u3", True), logged="u1 u3")
    assert unexplained_refusals([refused()], told) == []


def test_each_such_message_is_reason_for_one_refusal() -> None:
    told = history(("u1", False), ("u2", False), ("u3", False), logged="u1")
    assert unexplained_refusals([refused(), refused()], told) == [refused()]


@pytest.mark.parametrize(("told", "why"), [
    (history(("u1", False), ("u1", True), ("u2", False), logged="u1"), "it was told that the message was taken"),
    (history(("u1", False), ("u2", False)), "the message was never carried out"),
    (history(("u1", False), logged="u1", session="another"), "the message was said in another session"),
    (history(), "nothing was said"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_a_session_that_is_busy_for_no_reason_is_not_excused(told: History, why: str) -> None:
    assert unexplained_refusals([refused()], told) == [refused()], why


@pytest.mark.parametrize("words", [
    "aap-0: POST /turns 503 Redis at redis://x cannot be reached", "cas-0: nothing is pending under 'ask_1'",
    "aap-0: POST /turns 504 it is not known whether this was done",
])
def test_a_server_without_redis_or_without_its_peer_may_refuse(words: str) -> None:
    assert unexplained_refusals([refused(words)], history()) == []


def test_an_answer_may_be_refused_if_an_earlier_one_settled_the_ask_and_nobody_was_told() -> None:
    found = [refused("zenflux-0: POST 404 nothing waits under 'ask_1'")]
    given = GivenAnswer("zenflux-0", "s", "ask_1", False)
    settled = [m.Record(seq=1, at=1.0, session_id="s", event=m.InputResolved(
        request_id="ask_1", resolution=m.Resolution.ANSWERED))]
    assert unexplained_refusals(found, History(answered=[given, given], logs={"s": settled})) == []
    assert unexplained_refusals(found, History(answered=[given], logs={"s": settled})) == found, "the only answer"
    assert unexplained_refusals(found, History(answered=[given, given], logs={"s": []})) == found, "nothing settled it"


def test_any_other_refusal_is_held_against_the_fleet() -> None:
    found = [refused("aap-0: a new message did not work"), refused("cas-0: GET /replay 404")]
    assert unexplained_refusals(found, history(("u1", False), logged="u1")) == found
