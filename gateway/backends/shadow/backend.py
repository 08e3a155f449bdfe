"""An agent and its shadow: clients get the events of the agent; the shadow runs the same turns and is compared."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

import structlog

import gateway.model as m
from gateway.client import BackendOutputs, events_of
from gateway.errors import GatewayError
from gateway.ids import Mint, make_mint
from gateway.ports import Backend, BackendEvent, ResumableBackend, StatefulBackend, Turn
from gateway.supervision import exception_of

from .comparison import ShadowReport, TurnStructure, differences

log = structlog.get_logger("dragoman.shadow")

MAX_EVENTS = 200_000
"""Only so many events of a shadow's turn are read."""
MAX_SESSIONS = 10_000
"""The shadow's metadata of so many sessions is kept."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowOptions:
    """The share of the turns that the shadow gets, how many at once, and how many seconds one may take."""

    share: float = 1.0
    at_once: int = 8
    seconds: float = 300.0


class ShadowBackend:
    """Takes the place of the agent; whatever the shadow does, the agent's turn is not affected."""

    def __init__(self, agent: Backend, shadow: Backend, reporter: ShadowReport, options: ShadowOptions) -> None:
        self._agent, self._shadow, self._reporter, self._options = agent, shadow, reporter, options
        self._chance = random.Random()  # noqa: S311  # which turns are copied is no secret
        self._tasks: set[asyncio.Task[None]] = set()
        self._metadata: dict[str, dict[str, object]] = {}

    def run(self, turn: Turn) -> BackendOutputs:
        return self._shadowed(turn) if self._is_chosen() else self._agent.run(turn)

    async def _shadowed(self, turn: Turn) -> BackendOutputs:
        recording = _TurnRecording(turn)
        shadow = self._follow(recording)
        with recording:
            try:
                async with aclosing(self._agent.run(_TurnCopy(turn, _RecordedAsks(recording)))) as outputs:
                    async for output in outputs:
                        for event in events_of(output):
                            recording.agent.add(event)
                        yield output
            except (GeneratorExit, asyncio.CancelledError):
                shadow.cancel()  # a turn that was interrupted is not compared
                raise

    async def forget(self, session_id: str) -> None:
        """The session was deleted: forget it in both agents."""
        self._metadata.pop(session_id, None)
        for backend in (self._agent, self._shadow):
            if isinstance(backend, StatefulBackend):
                await backend.forget(session_id)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._shadow.close()
        await self._agent.close()

    # -- the shadow ---------------------------------------------------------------------------------------------------

    def _is_chosen(self) -> bool:
        return len(self._tasks) < self._options.at_once and self._chance.random() < self._options.share

    def _follow(self, recording: "_TurnRecording") -> asyncio.Task[None]:
        task = asyncio.create_task(self._play(recording), name=f"shadow of turn {recording.turn.turn_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _play(self, recording: "_TurnRecording") -> None:
        """Run the shadow, wait for the agent, and report how they differ."""
        structure, reason = TurnStructure(), ""
        try:
            async with asyncio.timeout(self._options.seconds):
                await self._guarded(recording, structure)
                await recording.ended()
        except TimeoutError:
            reason = f"the two were not done within {self._options.seconds:g} seconds"
        found = [] if reason else differences(recording.agent.facts, structure.facts)
        verdict = "failed" if reason else "differs" if found else "same"
        turn = recording.turn
        await self._reporter.write(
            session_id=turn.session_id, turn_id=turn.turn_id, agent=turn.agent.name, verdict=verdict, differences=found,
            reason=reason,
        )

    async def _guarded(self, recording: "_TurnRecording", structure: TurnStructure) -> None:
        """Run the shadow's turn in a task of its own: a failure is a fact of that turn, and nothing else."""
        error = await exception_of(self._run_shadow(recording, structure))
        if error is None:
            return
        structure.fail(error)
        if not isinstance(error, GatewayError):
            log.error("shadow_crashed", turn=recording.turn.turn_id, exc_info=error)

    async def _run_shadow(self, recording: "_TurnRecording", structure: TurnStructure) -> None:
        count, session_id = 0, recording.turn.session_id
        turn = _TurnCopy(
            recording.turn, _ReplayedAnswers(recording, structure), metadata=self._metadata.get(session_id, {}),
            mint=make_mint(),
        )
        async with aclosing(self._shadow.run(turn)) as outputs:
            async for output in outputs:
                for event in events_of(output):
                    count += 1
                    if count > MAX_EVENTS:
                        return
                    structure.add(event)
                    self._keep(session_id, event)

    def _keep(self, session_id: str, event: BackendEvent) -> None:
        """Store the shadow's metadata of a session here; the session itself does not have it."""
        if isinstance(event, m.SessionUpdated) and event.metadata is not None:
            self._metadata[session_id] = event.metadata
            if len(self._metadata) > MAX_SESSIONS:
                del self._metadata[next(iter(self._metadata))]


class ResumableShadowBackend:
    """A shadowed agent that can resume; a turn that resumes after a restart has no shadow any more."""

    def __init__(self, agent: ResumableBackend, shadowed: ShadowBackend) -> None:
        self.run, self.resume = shadowed.run, agent.resume
        self.forget, self.close = shadowed.forget, shadowed.close


def shadowed(agent: Backend, shadow: Backend, reporter: ShadowReport, options: ShadowOptions) -> Backend:
    """The agent with its shadow; it can resume if the agent can."""
    backend = ShadowBackend(agent, shadow, reporter, options)
    return ResumableShadowBackend(agent, backend) if isinstance(agent, ResumableBackend) else backend


class _TurnRecording:
    """One turn, the events of the agent, and the answers that the agent got."""

    def __init__(self, turn: Turn) -> None:
        self.turn, self.agent = turn, TurnStructure()
        self.is_over = False
        self.answers: list[tuple[m.AnyAsk, m.Answer]] = []
        self._changed = asyncio.Event()

    def add_answers(self, asks: Sequence[m.AnyAsk], answers: Sequence[m.Answer]) -> None:
        self.answers += zip(asks, answers, strict=True)
        self._wake()

    def __enter__(self) -> None:
        """The agent's turn begins."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        """The agent's turn is over; if it failed, the error is a fact of it."""
        if error is not None:
            self.agent.fail(error)
        self.is_over = True
        self._wake()

    async def change(self) -> None:
        """Wait until the agent got answers, or its turn is over."""
        await self._changed.wait()

    async def ended(self) -> None:
        while not self.is_over:
            await self.change()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _Asks(Protocol):
    """Answers the asks of an agent."""

    async def answers(self, asks: Sequence[m.AnyAsk], scope_id: str) -> list[m.Answer]: ...


class _RecordedAsks:
    """Asks people, and records the asks and their answers."""

    def __init__(self, recording: _TurnRecording) -> None:
        self._recording = recording

    async def answers(self, asks: Sequence[m.AnyAsk], scope_id: str) -> list[m.Answer]:
        self._recording.agent.ask(asks, scope_id)
        answers = await self._recording.turn.ask(*asks, scope_id=scope_id)
        self._recording.add_answers(asks, answers)
        return answers


class _ReplayedAnswers:
    """Gives the shadow the answers that the agent got to asks of the same kind; nobody is asked twice."""

    def __init__(self, recording: _TurnRecording, structure: TurnStructure) -> None:
        self._recording, self._structure = recording, structure
        self._used: set[int] = set()

    async def answers(self, asks: Sequence[m.AnyAsk], scope_id: str) -> list[m.Answer]:
        self._structure.ask(asks, scope_id)
        return [await self._answer(ask) for ask in asks]

    async def _answer(self, ask: m.AnyAsk) -> m.Answer:
        while True:
            for number, (asked, answer) in enumerate(self._recording.answers):
                if number not in self._used and type(asked) is type(ask):
                    self._used.add(number)
                    return answer
            if self._recording.is_over:
                return m.Withdraw(request_id="")
            await self._recording.change()


class _TurnCopy:
    """The turn as an agent sees it, with its own way to answer asks; metadata and ids are the turn's unless given."""

    def __init__(
        self, turn: Turn, asks: _Asks, *, metadata: Mapping[str, object] | None = None, mint: Mint | None = None,
    ) -> None:
        self._turn, self._asks, self._metadata, self._mint = turn, asks, metadata, mint or turn.mint
        self.session_id, self.turn_id = turn.session_id, turn.turn_id
        self.agent: m.AgentCard = turn.agent
        self.command: m.SendMessage | m.Compact = turn.command
        self.history: Sequence[m.HistoryEntry] = turn.history
        self.memories: Sequence[m.MemoryRef] = turn.memories
        self.asked: Sequence[m.AnyAsk] = ()

    @property
    def settings(self) -> m.Settings:
        return self._turn.settings

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._turn.metadata if self._metadata is None else self._metadata

    def mint(self, prefix: str) -> str:
        return self._mint(prefix)

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        self.asked = asks
        return await self._asks.answers(asks, scope_id)

    async def read_skill(self, name: str, path: str = m.SKILL_FILE) -> m.SkillFile:
        return await self._turn.read_skill(name, path)
