"""A judge of histories: what clients saw against what the log has, as plain data; every broken promise is named.

Whoever runs servers and clients fills a `EventHistory`: what each connection heard, what was said and answered, and the
records of each session. What the log tells a client is a `telling`: the things that a reader of the whole stream would
have heard, in order. Things are strings; two are the same thing if they are equal.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import gateway.model as m

NOW = "\0now"
"""The cursor of a connection that began with whatever came next."""


class Kind(StrEnum):
    """What can be broken."""

    LOST = "lost"
    REORDERED = "reordered"
    REPEATED = "repeated"
    GAP = "gap"
    UNLAWFUL = "unlawful"
    NOT_ENDED = "turn not ended"
    ENDED_TWICE = "turn ended twice"
    ASK_LOST = "ask lost"
    REFUSED = "refused and done"
    STUCK = "stuck"


class Violation(NamedTuple):
    kind: Kind
    session: str
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.session}: {self.words}"


class ConnectionHistory(NamedTuple):
    """What one connection got, in order; `stream` says which telling of the session it is a piece of."""

    client: str
    session: str
    stream: str
    heard: tuple[str, ...]
    after: str | None = None
    """The last thing the client had before, with which it asked for the rest; None: from the start of the stream."""
    ended: bool = False
    """Whether the stream came to its own end, so that nothing may be missing."""


class SentMessage(NamedTuple):
    """A message with words that nobody else says; `taken` if the client was told that it was accepted."""

    client: str
    session: str
    words: str
    taken: bool
    at: float = 0.0
    """When, by a clock that does not go back."""


class GivenAnswer(NamedTuple):
    """An answer to an ask; `taken` if the client was told that it was accepted."""

    client: str
    session: str
    request_id: str
    taken: bool
    at: float = 0.0


class SeenLog(NamedTuple):
    """What the log of a session was when somebody looked; `records` is None if there was no such session."""

    session: str
    begin: float
    end: float
    records: Sequence[m.Record] | None


@dataclass
class History:
    """All that is known of a run, once it is over."""

    hearings: list[ConnectionHistory] = field(default_factory=list)
    said: list[SentMessage] = field(default_factory=list)
    answered: list[GivenAnswer] = field(default_factory=list)
    refused: list[SentMessage] = field(default_factory=list)
    """Messages that were answered with 503, which says that nothing has happened."""
    logs: dict[str, Sequence[m.Record]] = field(default_factory=dict)
    reads: list[SeenLog] | None = None
    """Every look at a log, if looks are to be judged."""
    deletions: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By session: when somebody asked for its deletion, and when he was told of it (infinity: never)."""
    tellings: dict[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """By session and stream."""
    answers: Counter[str] = field(default_factory=Counter)
    """How often each kind of answer was given."""


def judge(history: History) -> list[Violation]:
    """Every promise that was broken; empty if all were kept."""
    found: list[Violation] = []
    for hearing in history.hearings:
        found += of_hearing(hearing, history.tellings.get((hearing.session, hearing.stream), ()))
    for session, records in history.logs.items():
        found += of_log(session, records)
    for said in history.said:
        found += of_said(said, history.logs.get(said.session, ()))
    for said in history.refused:
        found += of_refused(said, history.logs.get(said.session, ()))
    for answered in history.answered:
        found += of_answer(answered, history.logs.get(answered.session, ()))
    return found


# -- what was heard ---------------------------------------------------------------------------------------------------

def of_hearing(hearing: ConnectionHistory, telling: Sequence[str]) -> Iterator[Violation]:
    """What was heard is a piece of what is told: from the cursor on, without a gap, in order, once."""
    at = _start(hearing, telling)
    if at is None:
        yield _told(Kind.LOST, hearing, f"the log has no {hearing.after!r}, which was the client's cursor")
        return
    missed: set[str] = set()
    for thing in hearing.heard:
        if at < len(telling) and telling[at] == thing:
            at += 1
            continue
        place = _index(telling, thing, at)
        if place is not None:
            yield _told(Kind.GAP, hearing, f"{place - at} missing before {thing!r}, the first {telling[at]!r}")
            missed.update(telling[at:place])
            at = place + 1
        elif thing in missed:
            missed.discard(thing)
            yield _told(Kind.REORDERED, hearing, f"{thing!r} came late")
        elif thing in telling[:at]:
            yield _told(Kind.REPEATED, hearing, f"{thing!r} came again")
        else:
            yield _told(Kind.LOST, hearing, f"the log does not tell {thing!r}")
    if hearing.ended and at < len(telling):
        yield _told(Kind.GAP, hearing, f"the stream ended before {telling[at]!r}")


def _start(hearing: ConnectionHistory, telling: Sequence[str]) -> int | None:
    if hearing.after is None:
        return 0
    if hearing.after == NOW:
        return next((_index(telling, thing, 0) or 0 for thing in hearing.heard if thing in telling), 0)
    place = _index(telling, hearing.after, 0)
    return None if place is None else place + 1


def _index(telling: Sequence[str], thing: str, start: int) -> int | None:
    return next((place for place in range(start, len(telling)) if telling[place] == thing), None)


def _told(kind: Kind, hearing: ConnectionHistory, words: str) -> Violation:
    return Violation(kind, hearing.session, f"{hearing.client} ({hearing.stream}): {words}")


# -- what the log has -------------------------------------------------------------------------------------------------

def of_log(session: str, records: Sequence[m.Record]) -> Iterator[Violation]:
    """Numbers are dense, time does not go back, the grammar holds, and every turn ends once or waits for people."""
    numbers = [record.seq for record in records]
    for number, times in Counter(numbers).items():
        if times > 1:
            yield Violation(Kind.REPEATED, session, f"record {number} is there {times} times")
    for number in sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers)):
        yield Violation(Kind.LOST, session, f"record {number} is missing")
    if numbers != sorted(numbers) or [r.at for r in records] != sorted(r.at for r in records):
        yield Violation(Kind.REORDERED, session, "records are out of order, or time went back")
    yield from _lawful(session, records)
    yield from of_turns(session, records)


def _lawful(session: str, records: Sequence[m.Record]) -> Iterator[Violation]:
    grammar = m.Grammar()
    for record in records:
        try:
            grammar.check(record.event, record.scope_id)
        except m.GrammarError as error:
            yield Violation(Kind.UNLAWFUL, session, f"record {record.seq}: {error}")
            return


def of_turns(session: str, records: Sequence[m.Record]) -> Iterator[Violation]:
    started = [record.turn_id for record in records if isinstance(record.event, m.TurnStarted)]
    ended = Counter(record.turn_id for record in records if isinstance(record.event, m.TurnEnded))
    waiting = _waiting(session, records)
    for turn_id in started:
        if ended[turn_id] > 1:
            yield Violation(Kind.ENDED_TWICE, session, f"turn {turn_id} ended {ended[turn_id]} times")
        if not ended[turn_id] and turn_id != waiting:
            yield Violation(Kind.NOT_ENDED, session, f"turn {turn_id} neither ended nor waits for anybody")


def _waiting(session: str, records: Sequence[m.Record]) -> str | None:
    """The turn that waits for people at the end of the log."""
    view = m.fold(session, records)
    return view.turn_id if view.status is m.SessionStatus.SUSPENDED and view.asks else None


# -- what was said and answered ---------------------------------------------------------------------------------------

def of_said(said: SentMessage, records: Sequence[m.Record]) -> Iterator[Violation]:
    """What was taken is there once; what may have been taken is not there twice."""
    times = times_there(said.words, records)
    if times > 1:
        yield Violation(Kind.REPEATED, said.session, f"{said.words!r} was said once and is there {times} times")
    if said.taken and not times:
        yield Violation(Kind.LOST, said.session, f"{said.client} was told that {said.words!r} was taken")


def of_refused(said: SentMessage, records: Sequence[m.Record]) -> Iterator[Violation]:
    """What was refused is not there."""
    if times_there(said.words, records):
        yield Violation(Kind.REFUSED, said.session, f"{said.client} was told that {said.words!r} was refused")


def times_there(words: str, records: Iterable[m.Record]) -> int:
    """How often the log has the message with these words."""
    return sum(_says(record, words) for record in records)


def _says(record: m.Record, words: str) -> bool:
    event = record.event
    return (
        isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage)
        and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", m.text_of(event.command.content)) is not None
    )


def of_answer(answered: GivenAnswer, records: Sequence[m.Record]) -> Iterator[Violation]:
    """An ask that was answered is settled, once."""
    times = times_settled(answered.request_id, records)
    if times > 1:
        yield Violation(Kind.REPEATED, answered.session, f"{answered.request_id} was settled {times} times")
    if answered.taken and not times:
        yield Violation(Kind.LOST, answered.session, f"{answered.client} was told {answered.request_id} is settled")


def times_settled(request_id: str, records: Iterable[m.Record]) -> int:
    return sum(isinstance(r.event, m.InputResolved) and r.event.request_id == request_id for r in records)


# -- across a death ---------------------------------------------------------------------------------------------------

def of_return(
    before: Mapping[str, Sequence[m.Record]], after: Mapping[str, Sequence[m.Record]], *,
    code: m.FaultCode | None = m.FaultCode.INTERRUPTED,
) -> Iterator[Violation]:
    """From the records when the server died to those when it was back: nothing is lost, turns that ran are closed
    with a fault of this code, and whoever was asked is asked still, under the same ids."""
    for session, records in before.items():
        now = after.get(session, ())
        if list(now[:len(records)]) != list(records):
            yield Violation(Kind.LOST, session, _difference(records, now))
        else:
            yield from _taken_up(session, records, now, code)


def _difference(records: Sequence[m.Record], now: Sequence[m.Record]) -> str:
    place = next((n for n, (old, new) in enumerate(zip(records, now, strict=False)) if old != new), len(now))
    return f"record {place + 1} of {len(records)} is gone or changed"


def _taken_up(
    session: str, records: Sequence[m.Record], now: Sequence[m.Record], code: m.FaultCode | None,
) -> Iterator[Violation]:
    view = m.fold(session, records)
    if view.status is m.SessionStatus.SUSPENDED:
        yield from _asked_still(session, set(view.asks), now[len(records):], m.fold(session, now).asks)
    elif view.status is m.SessionStatus.RUNNING:
        yield from _closed(session, view.turn_id, now[len(records):], code)


def _asked_still(
    session: str, asks: set[str], news: Sequence[m.Record], open_now: Iterable[str]
) -> Iterator[Violation]:
    answered = {
        record.event.command.request_id for record in news
        if isinstance(record.event, m.InputAccepted) and hasattr(record.event.command, "request_id")
    }
    for request_id in sorted(asks - set(open_now) - answered):
        yield Violation(Kind.ASK_LOST, session, f"{request_id} was open, nobody answered it, and it is open no more")


def _closed(
    session: str, turn_id: str | None, news: Sequence[m.Record], code: m.FaultCode | None
) -> Iterator[Violation]:
    end = next((r.event for r in news if r.turn_id == turn_id and isinstance(r.event, m.TurnEnded)), None)
    if end is None:
        yield Violation(Kind.NOT_ENDED, session, f"turn {turn_id} ran when the server died, and was not closed")
    elif code is not None and (end.fault is None or end.fault.code is not code):
        yield Violation(Kind.NOT_ENDED, session, f"turn {turn_id} was not closed with the fault '{code}': {end}")


def asked(records: Iterable[m.Record]) -> dict[str, str]:
    """The asks of a session, settled or not, and the turn each belongs to."""
    return {r.event.request_id: r.turn_id or "" for r in records if isinstance(r.event, m.InputRequested)}
