"""A house for tests: an engine over a memory log, agents made of a function, and a clock that stands still."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from dataclasses import dataclass, field, replace

import gateway.model as m
from gateway.config import LimitSettings
from gateway.engine import (
    Hub,
    LocalSessionService,
    Runtime,
    Session,
    SessionCache,
    SessionCleanup,
    SessionCommits,
    SessionTable,
    find_session,
)
from gateway.engine.runtime import NoCleanup
from gateway.ids import make_mint
from gateway.ports import (
    NO_FRAMES,
    NO_LISTENER,
    BackendEvent,
    EventLog,
    Frame,
    Frames,
    Projector,
    StreamKey,
    StreamOptions,
    Turn,
)
from gateway.storage.log import MemoryLog
from tests.support.gateway_server import until
from tests.support.storage.commit_recorder import CommitRecorder

CARD = m.AgentCard(
    name="agent",
    tools=(m.AgentTool(spec=m.ToolSpec(name="clock")), m.AgentTool(spec=m.ToolSpec(name="calc"))),
    options=(
        m.AgentOption(name="tone", default="plain"),
        m.AgentOption(name="api_key", kind=m.OptionKind.SECRET),
        m.AgentOption(name="size", kind=m.OptionKind.SELECT, choices=("small", "large"), default="small"),
    ),
)

Play = Callable[[Turn], AsyncGenerator[BackendEvent, None]]


class FunctionBackend:
    """A backend made of one async generator function."""

    def __init__(self, play: Play) -> None:
        self.play = play

    def run(self, turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        return self.play(turn)

    async def close(self) -> None:
        """Nothing to put away."""


@dataclass
class CountingMetrics:
    """Counts what the engine reports."""

    ended: list[str] = field(default_factory=list)
    handed: int = 0
    watching: int = 0
    cuts: int = 0
    silent: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    def turn_ended(self, view: m.SessionView, ended: m.TurnEnded) -> None:
        self.ended.append(ended.outcome)

    def events(self, dialect: str, count: int) -> None:
        self.handed += count

    def subscribed(self, change: int) -> None:
        self.watching += change

    def cut(self) -> None:
        self.cuts += 1

    @property
    def counted_events(self) -> frozenset[type[m.Event]]:
        return frozenset(m.EVENTS) - {m.BlockDelta}

    def count_record(self, key: StreamKey, record: m.Record, is_sent: bool) -> None:
        (self.sent if is_sent else self.silent).append(record.event.name)


class PlainProjector:
    """A projector that says each record's number and name."""

    deadline: float | None = None

    def feed(self, record: m.Record) -> Frames:
        return (Frame(f"{record.seq} {record.event.name}\n".encode()),)

    def flush(self, now: float) -> Frames:
        return NO_FRAMES


@dataclass
class Streams:
    """The projectors of a hub, and the dialects whose projectors need only the records of the turn."""

    make_projector: Callable[[str, str], Projector] = lambda dialect, options: PlainProjector()
    of_turns: Collection[str] = ()

    def projector(self, dialect: str, options: StreamOptions) -> Projector:
        return self.make_projector(dialect, options)

    def replays_turn(self, dialect: str) -> bool:
        return dialect in self.of_turns


class RecordedCleanup:
    """Remembers the sessions that were deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def session_deleted(self, session_id: str) -> None:
        self.deleted.append(session_id)


class EngineFixture:
    """One engine with one agent."""

    def __init__(
        self, play: Play, *, projector: Callable[[str, StreamOptions], Projector] | None = None,
        of_turns: Collection[str] = (), log: EventLog | None = None, cleanup: SessionCleanup | None = None,
        **limits: float,
    ) -> None:
        self.now = 1_700_000_000.0
        self.watchman = CountingMetrics()
        self.limits = LimitSettings().model_copy(update=limits)
        self.runtime = Runtime(
            log=MemoryLog() if log is None else log, clock=lambda: self.now,
            mint=make_mint("t" if log is None else None), limits=self.limits, agents={"agent": CARD},
            backends={"agent": FunctionBackend(play)}, observer=self.watchman, cleanup=cleanup or NoCleanup(),
        )
        self.table = SessionTable()
        self.hub = Hub(
            log=self.runtime.log,
            sessions=self.table,
            streams=Streams(projector or (lambda dialect, options: PlainProjector()), of_turns),
            clock=lambda: self.now,
            observer=self.watchman,
            max_lag=lambda: self.limits.max_lag_events,
        )
        self.cache = SessionCache(self.runtime, self.table, self.hub)
        self.service = LocalSessionService(self.runtime, self.cache, self.cache, self.hub)
        self.commits = CommitRecorder(SessionCommits(self.table, self.hub))
        self.runtime.log._listener = NO_LISTENER  # type: ignore[attr-defined]  # the server before this one is gone
        self.runtime.log.attach(self.commits)

    async def session(self, owner: str = "") -> Session:
        view = await self.service.create(owner, "agent")
        return await find_session(self.cache, owner, view.session_id)

    async def records(self, session: Session) -> list[m.Record]:
        return list(await self.runtime.log.read(session.view.session_id))

    async def until(self, session: Session, *kinds: type[m.Event]) -> None:
        """Wait until an event of one of these kinds is the last one."""
        kinds = kinds or (m.TurnEnded, m.TurnSuspended)
        last = self.commits.last
        last.setdefault(session.view.session_id, (await self.records(session))[-1].event)
        await until(lambda: isinstance(last[session.view.session_id], kinds))


def names(records: Iterable[m.Record]) -> list[str]:
    return [record.event.name for record in records]


def lawful(records: Iterable[m.Record]) -> m.Grammar:
    """Every record is in its place; numbers are dense and time never goes back."""
    grammar, before = m.Grammar(), None
    for record in records:
        grammar.check(record.event, record.scope_id)
        if before is not None:
            assert record.seq == before.seq + 1
            assert record.at >= before.at
        before = record
    return grammar


def refolded(view: m.SessionView, records: list[m.Record]) -> m.SessionView:
    """The view that the records alone give."""

    return m.fold(view.session_id, records)


__all__ = [
    "CARD",
    "CountingMetrics",
    "EngineFixture",
    "FunctionBackend",
    "PlainProjector",
    "RecordedCleanup",
    "Streams",
    "lawful",
    "names",
    "refolded",
    "replace",
]
