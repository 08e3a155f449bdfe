"""Sessions that are written straight into a log, faster than an agent could say them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import gateway.model as m
from gateway.ports import ANONYMOUS, EventLog
from gateway.resources import ScheduledTask, Schedules
from gateway.storage import Database
from gateway.storage.log import SqliteLog
from gateway.storage.resources import SqliteResources

AGENT = "demo"
STARTED_AT, PACE = 1.7e9, 0.02
"""When the first session was created, and the seconds between two records; so fast does a model speak."""
EVENTS_PER_TURN = 100
RECORDS_PER_WRITE = 20_000
RARE = "红茶与柠檬"
"""What is said in one session, and in no other."""


@dataclass(frozen=True)
class StoredSession:
    """One long session in a log, and where its turns are."""

    session_id: str
    head: int
    turns: Sequence[tuple[str, int]]
    """The id of each turn, and the number of the record with which it starts."""

    @property
    def last_turn(self) -> str:
        return self.turns[-1][0]


def long_session(
    name: str, events: int, events_per_turn: int = EVENTS_PER_TURN,
) -> tuple[StoredSession, list[m.Record]]:
    """A session of so many events, in turns of so many events each; nine of ten are deltas."""
    session_id, turns, records = f"sess_{name}", list[tuple[str, int]](), list[m.Record]()

    def add(event: m.AnyEvent, turn_id: str | None) -> None:
        seq = len(records) + 1
        records.append(m.Record(
            seq=seq, at=STARTED_AT + seq * PACE, session_id=session_id, turn_id=turn_id, event=event))

    add(m.SessionCreated(agent=AGENT, owner=ANONYMOUS, title=f"A session of {events} events"), None)
    for number in range(events // events_per_turn):
        turn_id = f"turn_{name}x{number}"
        for event in turn_events(f"c{number}", f"msg_{name}x{number}", events_per_turn - 7):
            if isinstance(event, m.TurnStarted):
                turns.append((turn_id, len(records) + 1))
            add(event, turn_id)
    return StoredSession(session_id, len(records), turns), records


def turn_events(command: str, message: str, words: int, said: str = "What now?") -> Iterator[m.AnyEvent]:
    """One turn: a question, and an answer of so many words."""
    kind, block = m.BlockKind.TEXT, f"blk_{message}"
    yield m.InputAccepted(command_id=command, command=m.SendMessage(content=said))
    yield m.TurnStarted(command_id=command)
    yield m.MessageStarted(message_id=message)
    yield m.BlockStarted(block_id=block, message_id=message, kind=kind)
    for number in range(words):
        yield m.BlockDelta(block_id=block, message_id=message, kind=kind, delta=f"word{number} ")
    yield m.BlockEnded(
        block_id=block, message_id=message, kind=kind, text="".join(f"word{number} " for number in range(words)))
    yield m.MessageEnded(message_id=message)
    yield m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN)


def many_sessions(sessions: int) -> Iterator[m.Record]:
    """So many short sessions: a title, a question and an answer each; the rare words are in the first one."""
    for number in range(sessions):
        session_id, turn_id = f"sess_many{number}", f"turn_many{number}"
        said = RARE if number == 0 else f"Question {number} about {TOPICS[number % len(TOPICS)]}"
        events = chain(
            [m.SessionCreated(agent=AGENT, owner=ANONYMOUS, title=f"Session {number}")],
            turn_events(f"c{number}", f"msg_many{number}", 3, said),
        )
        for seq, event in enumerate(events, 1):
            yield m.Record(
                seq=seq, at=STARTED_AT + number + seq * PACE, session_id=session_id,
                turn_id=turn_id if seq > 1 else None, event=event)


TOPICS = ("tea", "trains", "treaties", "gardens", "rivers", "clocks", "glass", "winter", "maps", "日本語", "翻译")


async def store(log: EventLog, records: Iterator[m.Record]) -> None:
    """Append the records through the port of the log, and wait until all are stored."""
    while some := list(islice(records, RECORDS_PER_WRITE)):
        for record in some:
            log.append(record)
        for session_id, seq in {record.session_id: record.seq for record in some}.items():
            await log.wait_stored(session_id, seq)


async def store_in_file(path: Path, records: Iterator[m.Record], searched: str = "") -> None:
    """Write a log into a file before a server opens it; the texts are indexed if somebody has searched."""
    log = SqliteLog(Database(path))
    await log.open()
    await store(log, records)
    if searched:
        await log.mentioning(ANONYMOUS, searched)
    await log.close()


async def store_schedules(path: Path, count: int) -> None:
    """Write so many schedules into a file before a server opens it; each user has twenty."""
    database = Database(path)
    await database.open()
    schedules = Schedules(SqliteResources(database, time.time), time.time)
    for number in range(count):
        await schedules.add(f"user{number // 20}", ScheduledTask(
            title=f"Task {number}", prompt="hello", cron="0 9 * * *", timezone="UTC", agent=AGENT))
    await database.close()
