"""The judge is judged: it is silent about an honest history, and names each kind of lie in a doctored one."""

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

import gateway.model as m
from tests.prove.crash.history import (
    NOW,
    ConnectionHistory,
    GivenAnswer,
    History,
    Kind,
    SentMessage,
    Violation,
    judge,
    of_hearing,
    of_log,
    of_return,
)

WORDS = ("one", "two", "three", "four", "five")


def kinds(found: Sequence[Violation] | object) -> list[Kind]:
    return [violation.kind for violation in found]  # type: ignore[attr-defined]


# -- hearings ---------------------------------------------------------------------------------------------------------

def hearing(*heard: str, after: str | None = None, ended: bool = False) -> ConnectionHistory:
    return ConnectionHistory("c", "s", "all", heard, after, ended)


@pytest.mark.parametrize("honest", [
    hearing(), hearing(*WORDS), hearing(*WORDS, ended=True), hearing("one", "two"),
    hearing("three", "four", after="two"), hearing(after="five", ended=True), hearing("two", "three", after=NOW),
])
def test_an_honest_hearing_is_let_pass(honest: ConnectionHistory) -> None:
    assert list(of_hearing(honest, WORDS)) == []


@pytest.mark.parametrize(("doctored", "kind"), [
    (hearing("one", "two", "else"), [Kind.LOST]),
    (hearing("one", "three", "four"), [Kind.GAP]),
    (hearing("two", "three"), [Kind.GAP]),
    (hearing("one", "one", "two"), [Kind.REPEATED]),
    (hearing("one", "three", "two", "four"), [Kind.GAP, Kind.REORDERED]),
    (hearing("four", "five", after="two"), [Kind.GAP]),
    (hearing("two", "three", after="two"), [Kind.REPEATED]),
    (hearing("two", "three", after="one", ended=True), [Kind.GAP]),
    (hearing("two", "four", after=NOW), [Kind.GAP]),
    (hearing("one", after="never said"), [Kind.LOST]),
])
def test_a_doctored_hearing_is_noticed(doctored: ConnectionHistory, kind: list[Kind]) -> None:
    assert kinds(list(of_hearing(doctored, WORDS))) == kind


def test_equal_words_are_told_apart_by_their_place() -> None:
    telling = ("a", "b", "a", "b")
    assert list(of_hearing(hearing("a", "b", "a"), telling)) == []
    assert kinds(list(of_hearing(hearing("a", "a"), telling))) == [Kind.GAP]


# -- logs -------------------------------------------------------------------------------------------------------------

def log(*events: m.Event, turn: str = "turn_1") -> list[m.Record]:
    return [
        m.Record(seq=seq, at=float(seq), session_id="s", turn_id=None if seq == 1 else turn, event=event)  # type: ignore[arg-type]
        for seq, event in enumerate((m.SessionCreated(agent="a", owner=""), *events), 1)
    ]


SENT = m.InputAccepted(command_id="c", command=m.SendMessage(content="hello 1"))
SPEECH = (
    SENT, m.TurnStarted(command_id="c"), m.MessageStarted(message_id="m", role=m.Role.ASSISTANT),
    m.BlockStarted(block_id="b", message_id="m", kind=m.BlockKind.TEXT),
    m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="hi"),
)
FAULT = m.Fault(code=m.FaultCode.INTERRUPTED, message="gone")
CLOSED = (
    m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TEXT, text="hi"),
    m.MessageEnded(message_id="m", outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR),
    m.FaultRaised(fault=FAULT),
)
END = m.TurnEnded(outcome=m.Outcome.FAILED, stop_reason=m.StopReason.ERROR, fault=FAULT)
ASKED = (
    SENT,
    m.TurnStarted(command_id="c"),
    m.InputRequested(request_id="ask_1", ask=m.ContinuationAsk(turn=1, message="on?")),
    m.TurnSuspended(pending=("ask_1",)),
)
ANSWER = m.InputAccepted(command_id="d", command=m.ContinueTurn(request_id="ask_1"))
SETTLED = m.InputResolved(request_id="ask_1", resolution=m.Resolution.GRANTED)
RESUMED = (ANSWER, SETTLED, m.TurnResumed(settled=("ask_1",)))


def test_an_honest_log_is_let_pass() -> None:
    assert list(of_log("s", log(*SPEECH, *CLOSED, END))) == []
    assert list(of_log("s", log(*ASKED))) == []
    assert list(of_log("s", log(*ASKED, *RESUMED, END))) == []


DOCTORED: list[tuple[Callable[[list[m.Record]], list[m.Record]], Kind]] = [
    (lambda records: records[:4] + records[5:], Kind.LOST),
    (lambda records: records[:4] + records[3:], Kind.REPEATED),
    (lambda records: [*records[:3], records[4], records[3], *records[5:]], Kind.REORDERED),
    (lambda records: [*records[:5], replace(records[5], at=0.5), *records[6:]], Kind.REORDERED),
    (lambda records: records[:-1], Kind.NOT_ENDED),
    (lambda records: [*records, replace(records[-1], seq=len(records) + 1, at=99.0)], Kind.ENDED_TWICE),
    (lambda records: [*records, replace(records[5], seq=len(records) + 1, at=99.0)], Kind.UNLAWFUL),
]


@pytest.mark.parametrize(("doctor", "kind"), DOCTORED)
def test_a_doctored_log_is_noticed(doctor: Callable[[list[m.Record]], list[m.Record]], kind: Kind) -> None:
    assert kind in kinds(list(of_log("s", doctor(log(*SPEECH, *CLOSED, END)))))


# -- what was said ----------------------------------------------------------------------------------------------------

def test_what_was_taken_is_there_once() -> None:
    def judged(records: list[m.Record], *, said: bool = True, answered: bool = True) -> list[Kind]:
        return kinds(judge(History(
            said=[SentMessage("c", "s", "hello 1", said)], answered=[GivenAnswer("c", "s", "ask_1", answered)],
            logs={"s": records},
        )))

    honest = log(*ASKED, *RESUMED, END)
    assert judged(honest) == []
    assert judged([]) == [Kind.LOST, Kind.LOST]
    assert judged([], said=False, answered=False) == []
    assert Kind.REPEATED in judged(log(SENT, *ASKED, *RESUMED, END))
    assert Kind.REPEATED in judged(log(*ASKED, ANSWER, SETTLED, SETTLED, RESUMED[-1], END))
    assert judged(log(*ASKED)) == [Kind.LOST]


def test_what_was_refused_is_not_there() -> None:
    def judged(records: list[m.Record]) -> list[Kind]:
        return kinds(judge(History(refused=[SentMessage("c", "s", "hello 1", False)], logs={"s": records})))

    assert judged([]) == []
    assert judged(log(*SPEECH, *CLOSED, END)) == [Kind.REFUSED]


# -- deaths -----------------------------------------------------------------------------------------------------------

def returned(before: list[m.Record], after: list[m.Record]) -> list[Kind]:
    return kinds(list(of_return({"s": before}, {"s": after})))


def test_a_turn_that_ran_is_closed_as_interrupted() -> None:
    before = log(*SPEECH)
    assert returned(before, log(*SPEECH, *CLOSED, END)) == []
    assert returned(before, before) == [Kind.NOT_ENDED]
    other = replace(END, fault=m.Fault(code=m.FaultCode.INTERNAL, message="?"))
    assert returned(before, log(*SPEECH, *CLOSED, other)) == [Kind.NOT_ENDED]


def test_who_was_asked_is_asked_still() -> None:
    before = log(*ASKED)
    assert returned(before, before) == []
    assert returned(before, log(*ASKED, *RESUMED, END)) == []
    assert returned(before, log(*ASKED, SETTLED, END)) == [Kind.ASK_LOST]


def test_what_was_there_is_there() -> None:
    before = log(*SPEECH, *CLOSED, END)
    assert returned(before, before) == []
    assert returned(before, before[:-1]) == [Kind.LOST]
    assert returned(before, []) == [Kind.LOST]
    assert returned(before, [*before[:3], replace(before[3], at=9.0), *before[4:]]) == [Kind.LOST]


def test_all_of_it_is_judged_together() -> None:
    records = log(*SPEECH, *CLOSED, END)
    history = History(
        hearings=[hearing("one", "two")], logs={"s": records}, tellings={("s", "all"): WORDS},
        said=[SentMessage("c", "s", "hello 1", True)],
    )
    assert judge(history) == []
    history.hearings.append(ConnectionHistory("d", "s", "other", ("one",)))
    assert kinds(judge(history)) == [Kind.LOST]
