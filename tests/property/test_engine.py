"""The engine under moves nobody planned: whoever watches is told what the log has, once, in order, and all of it."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import gateway.model as m
from gateway.engine import Cursor
from gateway.engine.streams import channel as channel_module
from gateway.engine.streams import cursor as cursor_module
from gateway.engine.streams import feed as feed_module
from gateway.errors import GatewayError
from gateway.ports import (
    NO_OPTIONS,
    BackendEvent,
    BackendOutput,
    Frame,
    LogListener,
    Projector,
    ScopedEvent,
    StreamOptions,
)
from gateway.ports import Turn as TurnPort
from gateway.storage.log import MemoryLog
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.engine.engine_fixture import EngineFixture, PlainProjector, lawful, refolded
from tests.support.examples import examples
from tests.support.record_streams import ENGINES, RandomWalk

READINGS = ("plain", *sorted(DIALECTS))
OF_TURNS = [name for name in DIALECTS if name != "zenflux" and dialect(name).replay_from == "turn"]
"""A stream of ZenFlux is of one turn; who watches several turns has read from the start."""


class Grouped(MemoryLog):
    """A log that stores what it has taken when it is told to, and tells of what it has stored some time after that."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[m.Record] = []
        self.stored: list[m.Record] = []
        self._told: dict[str, int] = {}
        self._news = asyncio.Event()

    def append(self, record: m.Record) -> None:
        self.taken.append(record)

    def append_deltas(self, records: Sequence[m.Record]) -> None:
        self.taken += records

    def attach(self, listener: LogListener) -> None:
        self._reader = listener

    def store(self) -> None:
        for record in self.taken:
            super().append(record)
        self.stored, self.taken = [*self.stored, *self.taken], []

    def tell(self) -> None:
        records, self.stored = self.stored, []
        for session_id in dict.fromkeys(record.session_id for record in records):
            of_one = [record for record in records if record.session_id == session_id]
            self._told[session_id] = of_one[-1].seq
            self._reader.committed(of_one)
        self._news.set()
        self._news = asyncio.Event()

    async def wait_stored(self, session_id: str, seq: int) -> None:
        while self._told.get(session_id, 0) < seq:
            await self._news.wait()

    def died(self) -> None:
        """What was not stored is gone; what was is all there is."""
        self.taken, self.stored = [], []
        self._told = {session_id: records[-1].seq for session_id, records in self._records.items()}


class Watcher:
    """Somebody who reads when they like, and may stop in the middle of it."""

    def __init__(self, reading: str, after: int, cursor: Cursor) -> None:
        self.reading, self.after, self.cursor = reading, after, cursor
        self.frames: list[Frame] = []
        self._task: asyncio.Task[Any] | None = None

    async def read(self) -> bool:
        """Whether something came at once."""
        task = self._task = self._task or asyncio.create_task(self.cursor.chunks())
        await settle()
        if not task.done():
            return False
        self._task = None
        self.frames += [frame for chunk in task.result() for frame in chunk.frames]
        return bool(task.result())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await settle()
            if not self._task.cancelled():
                self.frames += [frame for chunk in self._task.result() for frame in chunk.frames]
            self._task = None


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


class World:
    """One session, whoever watches it, and an agent that says its lines when it is prompted."""

    def __init__(self, scripts: list[list[BackendEvent]]) -> None:
        self.scripts = scripts
        self.prompts: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
        self.log = Grouped()
        self.watchers: list[Watcher] = []
        self.gone: list[Watcher] = []
        self.works: list[asyncio.Task[Any]] = []
        self.session_id = ""
        self.begin()

    def begin(self) -> None:
        self.stage = EngineFixture(self.play, log=self.log, projector=self.projector, of_turns=OF_TURNS)
        self.stage.runtime.cancel_on_disconnect = True
        self.service = self.stage.service

    @staticmethod
    def projector(name: str, options: StreamOptions) -> Projector:
        return PlainProjector() if name == "plain" else dialect(name).projector(table(name), options)

    async def play(self, turn: TurnPort) -> AsyncGenerator[BackendOutput, None]:
        lines = self.scripts.pop(0) if self.scripts else []
        while lines:
            what, number = await self.prompts.get()
            if what == "ask":
                await turn.ask(*[m.ContinuationAsk(turn=1, message="?") for _ in range(number % 2 + 1)])
            some, lines = lines[:number + 1], lines[number + 1:]
            if what == "say":
                for one in some:
                    yield one
            elif what == "together":
                yield some

    # -- moves ----------------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        async def done() -> None:
            with suppress(GatewayError):
                await work

        self.works.append(asyncio.create_task(done()))

    async def move(self, what: str, number: int) -> None:
        if what in ("say", "together", "ask") and self.prompts.empty():
            if what != "ask" or self._may_ask():
                self.prompts.put_nowait((what, number))
        elif what in ("send", "answer", "interrupt", "title", "leave"):
            self.command(what)
        elif what == "store":
            self.log.store()
        elif what == "tell":
            self.log.tell()
        elif what == "wait":
            self.stage.now += number / 10
        elif what == "die":
            await self.die()
        else:
            await self.watch(what, number)
        await asyncio.sleep(0)

    def _may_ask(self) -> bool:
        session = self.stage.table.get(self.session_id)
        return session.grammar.turn is m.TurnPhase.RUNNING and not session.grammar.calls and all(
            scope.phase is m.ScopePhase.QUIET for scope in session.grammar.scopes.values())

    def command(self, what: str) -> None:
        view = self.stage.table.get(self.session_id).view
        if what == "send":
            self.start(self.service.submit("", self.session_id, [m.SendMessage(content="go")]))
        elif what == "interrupt":
            self.start(self.service.submit("", self.session_id, [m.Interrupt()]))
        elif what == "title":
            self.start(self.service.update("", self.session_id, title="new"))
        elif what == "leave":
            self.start(self.service.client_left("", self.session_id, view.turn_id or "turn_before"))
        for request_id in list(view.asks) if what == "answer" else ():
            answer = m.ContinueTurn(request_id=request_id)
            self.start(self.service.submit("", self.session_id, [answer]))
            self.start(self.service.submit("", self.session_id, [answer]))

    async def watch(self, what: str, number: int) -> None:
        if what == "open":
            reading, session = READINGS[number % len(READINGS)], self.stage.table.get(self.session_id)
            after = session.stored_seq * number // 12
            options = dialect(reading).default_options if reading != "plain" else NO_OPTIONS
            cursor = await self.service.subscribe("", self.session_id, reading, options, after=after)
            self.watchers.append(Watcher(reading, after, cursor))
        elif self.watchers:
            watcher = self.watchers[number % len(self.watchers)]
            if what == "read":
                await watcher.read()
            else:
                await watcher.stop()
            if what == "close":
                self.part(watcher)

    def part(self, watcher: Watcher) -> None:
        watcher.cursor.close()
        self.watchers.remove(watcher)
        self.gone.append(watcher)

    async def die(self) -> None:
        """The server is killed, and another one comes up."""
        for watcher in list(self.watchers):
            await watcher.stop()
            self.part(watcher)
        for work in self.works:
            work.cancel()
        await settle()
        for session in self.stage.table:
            if session.run is not None:
                session.run.abandon()
        await settle()
        self.log.died()
        self.begin()
        recovering = asyncio.create_task(self.service.recover())
        await self.through()
        await recovering
        await self.service.get("", self.session_id)

    async def through(self) -> None:
        """All that was said is stored and told."""
        await settle()
        while self.log.taken or self.log.stored:
            self.log.store()
            self.log.tell()
            await settle()

    # -- the end --------------------------------------------------------------------------------------------------

    async def check(self) -> None:
        await self.through()
        if self.stage.table.get(self.session_id).run is not None:
            self.command("interrupt")
        self.stage.now += 10
        self.start(self.service.close("", self.session_id, m.CloseReason.TERMINATED))
        await self.through()
        session = self.stage.table.get(self.session_id)
        records = list(await self.log.read(self.session_id))
        assert session.stored_seq == session.view.head == len(records)
        assert lawful(records).turn is m.TurnPhase.IDLE
        assert refolded(session.view, records) == session.view
        for watcher in self.watchers:
            while await watcher.read():
                pass
            assert watcher.frames == await self.told(watcher), watcher.reading
            assert not watcher.cursor.open
        for watcher in self.gone:
            assert watcher.frames == (await self.told(watcher))[:len(watcher.frames)], watcher.reading
        assert self.stage.hub.subscribers == 0
        assert not self.stage.hub.watched
        assert all(work.done() for work in self.works)

    async def told(self, watcher: Watcher) -> list[Frame]:
        options = dialect(watcher.reading).default_options if watcher.reading != "plain" else NO_OPTIONS
        chunks = await self.service.read("", self.session_id, watcher.reading, options, after=watcher.after)
        return [frame async for chunk in chunks for frame in chunk.frames]


@st.composite
def scripts(draw: Any) -> list[list[BackendEvent]]:
    """What the agent says in each of its turns, with ids that come once."""
    walk, told = RandomWalk(draw), []
    for _ in range(1 + walk.chance.below(3)):
        before = len(walk.records)
        walk.turn(5 + walk.chance.below(16), suspend=False)
        own = [record for record in walk.records[before:] if not isinstance(record.event, ENGINES)]
        told.append([said for record in own for said in _wordy(record, walk.chance.below(7))])
    return told


def _wordy(record: m.Record, more: int) -> list[BackendEvent]:
    """The same, a text with so many words more before its end."""
    event, said = record.event, list[BackendEvent]()
    if isinstance(event, m.BlockEnded) and event.kind is m.BlockKind.TEXT:
        words = [f"{number} " for number in range(more)]
        said += [
            m.BlockDelta(block_id=event.block_id, message_id=event.message_id, kind=event.kind, delta=word)
            for word in words
        ]
        event = replace(event, text=(event.text or "") + "".join(words))
    said.append(event)
    return said if record.scope_id == m.ROOT else [ScopedEvent(record.scope_id, one) for one in said]


MOVES = st.tuples(
    st.sampled_from([
        *["say", "together"] * 4, *["send", "ask", "answer"] * 2, "interrupt", "title", "leave",
        *["store", "tell", "open"] * 3, *["read"] * 6, "stop", "wait", "close", "die",
    ]),
    st.integers(0, 12),
)


@examples(150)
@given(scripts(), st.lists(MOVES, min_size=40, max_size=120))
async def test_whoever_watches_is_told_what_the_log_has(
    script: list[list[BackendEvent]], moves: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:  # small bounds are soon reached
        patch.setattr(feed_module, "WINDOW", 4)
        patch.setattr(channel_module, "KEPT_CHUNKS", 4)
        patch.setattr(channel_module, "KEPT_BYTES", 4000)
        patch.setattr(cursor_module, "PAGE", 5)
        world = World(script)
        creating = asyncio.create_task(world.service.create("", "agent"))
        await world.through()
        world.session_id = (await creating).session_id
        world.command("send")
        for what, number in moves:
            await world.move(what, number)
        await world.check()
