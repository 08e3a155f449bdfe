"""Replays of recorded sessions: the turns of a session happen again in a new one, at the same or another speed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound, Overloaded
from gateway.json_values import JsonObject
from gateway.ports import BackendEvent, ReplayState, ReplayStatus, ScopedEvent, SessionService, Sleep, Turn
from gateway.time_slices import one_at_a_time

ReplayListener = Callable[[str, ReplayState], Awaitable[None]]

WAIT_SLICE_SECONDS, MAX_PAUSE_SECONDS, TURN_GAP_SECONDS = 0.25, 30.0, 1.0
"""Seconds: the delay until a new speed takes effect, the longest pause that is kept, and the pause between turns."""
MAX_REPLAYS, MAX_FINISHED_REPLAYS = 32, 1000
"""How many replays run at once, and of how many the end is remembered."""


@dataclass(slots=True)
class RecordedTurn:
    """The command of a turn, its events, and the seconds before each of them."""

    command: m.SendMessage | m.Compact
    steps: list[tuple[float, BackendEvent]] = field(default_factory=list)
    fault: m.Fault | None = None


def recorded_turns(records: Iterable[m.Record]) -> list[RecordedTurn]:
    """The turns that have ended; time in which a turn waited for people is left out."""
    commands: dict[str, m.SendMessage | m.Compact] = {}
    open_turns: dict[str, RecordedTurn] = {}
    done: list[RecordedTurn] = []
    last = 0.0
    for record in records:
        event, turn_id = record.event, record.turn_id or ""
        if isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage | m.Compact):
            commands[event.command_id] = event.command
        elif isinstance(event, m.TurnStarted) and event.command_id in commands:
            open_turns[turn_id], last = RecordedTurn(commands[event.command_id]), record.at
        elif turn_id not in open_turns:
            continue
        elif isinstance(event, m.TurnEnded):
            done.append(_with_fault(open_turns.pop(turn_id), event))
        elif isinstance(event, m.TurnSuspended | m.TurnResumed):
            last = record.at
        elif type(event) in m.BACKEND_EVENTS:
            output = event if record.scope_id == m.ROOT else ScopedEvent(record.scope_id, event)
            open_turns[turn_id].steps.append((min(max(record.at - last, 0.0), MAX_PAUSE_SECONDS), output))
            last = record.at
    return done


def _with_fault(turn: RecordedTurn, event: m.TurnEnded) -> RecordedTurn:
    """The last fault of the turn is raised again, and not only emitted."""
    if event.fault is not None:
        turn.fault = event.fault
        turn.steps = [step for step in turn.steps if step[1] != m.FaultRaised(fault=event.fault)]
    return turn


class RecordedFault(GatewayError):
    """The fault of the recorded turn."""

    def __init__(self, fault: m.Fault) -> None:
        super().__init__(fault.message, details=fault.details)
        self.code = fault.code  # type: ignore[misc]
        self.retryable = fault.retryable  # type: ignore[misc]


class ReplayBackend:
    """Plays recorded turns as the agent, one for each turn that the replay starts."""

    def __init__(self, speed: int, sleep: Sleep) -> None:
        self.speed = speed
        self.next: RecordedTurn | None = None
        self._sleep = sleep

    async def run(self, turn: Turn) -> AsyncGenerator[BackendEvent, None]:
        recorded, self.next = self.next, None
        if recorded is None or recorded.command != turn.command:
            raise Conflict("a replay is going on in this session; wait for its end, or stop it")
        for seconds, output in recorded.steps:
            await self.wait(seconds)
            yield output
        if recorded.fault is not None:
            raise RecordedFault(recorded.fault)

    async def wait(self, seconds: float) -> None:
        """Wait so many seconds of recorded time; a new speed takes effect at once."""
        while seconds > 0:
            slept = min(seconds / self.speed, WAIT_SLICE_SECONDS)
            await self._sleep(slept)
            seconds -= slept * self.speed

    async def close(self) -> None:
        """There is nothing to close."""


class Replay:
    """One replay of a session in another session."""

    def __init__(self, view: m.SessionView, source: str, turns: Sequence[RecordedTurn], player: ReplayBackend) -> None:
        self.view = view
        self.player = player
        self.turns = turns
        self.task: asyncio.Task[None] | None = None
        self._source = source
        self._status: ReplayStatus = "replaying"
        self._turn = 0

    @property
    def state(self) -> ReplayState:
        return ReplayState(
            source=self._source, status=self._status, speed=self.player.speed, turn=self._turn, turns=len(self.turns),
        )

    async def play(self, sessions: SessionService, on_change: ReplayListener) -> None:
        """Play turn by turn, until the last one or until somebody interrupts."""
        owner, session_id = self.view.owner, self.view.session_id
        try:
            for turn in self.turns:
                if self._turn:
                    await self.player.wait(TURN_GAP_SECONDS)
                self.player.next = turn
                await sessions.submit(owner, session_id, [turn.command])
                self._turn += 1
                while self.view.status in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED):
                    await self.player.wait(0.05 * self.player.speed)
                if self.view.ended is not None and self.view.ended.outcome == "interrupted":
                    break
            await self.end("completed" if self._turn == len(self.turns) else "stopped", sessions, on_change)
        except GatewayError:  # the session was closed or deleted, or somebody else has started a turn
            self._status = "stopped"

    async def end(self, status: ReplayStatus, sessions: SessionService, on_change: ReplayListener) -> None:
        self._status = status
        await sessions.replace_backend(self.view.owner, self.view.session_id, None)
        await on_change(self.view.session_id, self.state)


class SessionReplayer:
    """All replays of one server; `sleep` is given, so that tests need not wait."""

    def __init__(self, sessions: SessionService, sleep: Sleep = asyncio.sleep) -> None:
        self._sessions = sessions
        self._sleep = sleep
        self._replays: dict[str, tuple[Replay, ReplayListener]] = {}

    async def can(self, owner: str, session_id: str) -> str | None:
        view = await self._sessions.get(owner, session_id)
        if view.status in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED):
            return "a turn is running in the session"
        return None if len(view.checkpoints) > 1 else "nothing has happened in the session"

    async def start(
        self, owner: str, session_id: str, speed: int, metadata: JsonObject, on_change: ReplayListener,
    ) -> m.SessionView:
        if why := await self.can(owner, session_id):
            raise Conflict(why)
        if len(self._going) >= MAX_REPLAYS:
            raise Overloaded(f"{MAX_REPLAYS} replays are going on, and no more are allowed")
        async with one_at_a_time(owner):
            whole = await self._sessions.records(owner, session_id)
            records = await asyncio.to_thread(m.without_rewound, whole)
            turns = await asyncio.to_thread(recorded_turns, records)
        created, old = records[0].event, await self._sessions.get(owner, session_id)
        assert isinstance(created, m.SessionCreated)
        view = await self._sessions.create(
            owner, old.agent, settings=created.settings, history=created.history, title=old.title, metadata=metadata,
        )
        replay = Replay(view, session_id, turns, ReplayBackend(speed, self._sleep))
        await self._sessions.replace_backend(owner, view.session_id, replay.player)
        self._keep(view.session_id, replay, on_change)
        await on_change(view.session_id, replay.state)
        replay.task = asyncio.create_task(replay.play(self._sessions, on_change), name=f"replay {view.session_id}")
        return view

    def state(self, owner: str, session_id: str) -> ReplayState:
        return self._find(owner, session_id)[0].state

    async def change(
        self, owner: str, session_id: str, *, speed: int | None = None, stop: bool = False,
    ) -> ReplayState:
        replay, on_change = self._find(owner, session_id)
        replay.player.speed = speed or replay.player.speed
        if stop and replay.task is not None and not replay.task.done():
            replay.task.cancel()
            await self._sessions.submit(owner, session_id, [m.Interrupt()])
            await replay.end("autonomous", self._sessions, on_change)
        elif speed is not None:
            await on_change(session_id, replay.state)
        return replay.state

    async def close(self) -> None:
        tasks = self._going
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _going(self) -> list[asyncio.Task[None]]:
        return [replay.task for replay, _ in self._replays.values() if replay.task and not replay.task.done()]

    def _keep(self, session_id: str, replay: Replay, on_change: ReplayListener) -> None:
        over = [known for known, (one, _) in self._replays.items() if one.task is None or one.task.done()]
        for known in over[:max(0, len(self._replays) + 1 - MAX_FINISHED_REPLAYS)]:
            del self._replays[known]
        self._replays[session_id] = replay, on_change

    def _find(self, owner: str, session_id: str) -> tuple[Replay, ReplayListener]:
        found = self._replays.get(session_id)
        if found is None or found[0].view.owner != owner:
            raise NotFound(f"session '{session_id}' is no replay")
        return found
