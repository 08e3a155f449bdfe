"""The agent and its shadow: clients hear the first; the second is given the same turn, beside it, and is compared."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import structlog

import gateway.model as m
from gateway.client import BackendOutputs, events_of
from gateway.errors import GatewayError
from gateway.ids import make_mint
from gateway.ports import Backend, BackendEvent, ResumableBackend, StatefulBackend, Turn

from .comparison import ShadowReport, TurnStructure, differences

log = structlog.get_logger("dragoman.shadow")

MAX_EVENTS = 200_000
"""A shadow that says more than this in one turn is heard no further."""


class ShadowBackend:
    """Stands in the place of the agent; whatever the shadow does, slowly or wrongly, the agent's turn is as it was."""

    def __init__(
        self, agent: Backend, shadow: Backend, reporter: ShadowReport, *, share: float = 1.0, at_once: int = 8,
        seconds: float = 300.0, chance: random.Random | None = None,
    ) -> None:
        self._agent, self._shadow, self._reporter = agent, shadow, reporter
        self._share, self._at_once, self._seconds = share, at_once, seconds
        self._chance = chance or random.Random()  # noqa: S311  # which turns are copied is no secret
        self._tasks: set[asyncio.Task[None]] = set()
        self._metadata: dict[str, dict[str, Any]] = {}
        self.source = getattr(agent, "source", None)
        """Where the agent's code is, for those who watch it."""
        if isinstance(agent, ResumableBackend):
            self.resume = agent.resume  # a turn that comes back after a restart has no shadow any more

    async def run(self, turn: Turn) -> BackendOutputs:
        if not self._is_chosen():
            async with aclosing(self._agent.run(turn)) as speech:
                async for telling in speech:
                    yield telling
            return
        copied = _TurnRecording(turn, self._metadata.get(turn.session_id, {}))
        shadow = self._follow(copied)
        try:
            async with aclosing(self._agent.run(copied.watched)) as speech:
                async for telling in speech:
                    for said in events_of(telling):
                        copied.agent.say(said)
                    yield telling
        except (GeneratorExit, asyncio.CancelledError):
            shadow.cancel()  # a turn that was interrupted has nothing to be compared with
            raise
        except BaseException as error:
            copied.agent.fail(error)
            raise
        finally:
            copied.end()

    async def forget(self, session_id: str) -> None:
        """The session is gone; whichever of the two keeps something for it puts that away."""
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
        return len(self._tasks) < self._at_once and self._chance.random() < self._share

    def _follow(self, copied: "_TurnRecording") -> asyncio.Task[None]:
        task = asyncio.create_task(self._play(copied), name=f"shadow of turn {copied.turn.turn_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _play(self, copied: "_TurnRecording") -> None:
        told, reason = TurnStructure(), ""
        try:
            async with asyncio.timeout(self._seconds):
                await self._heard_out(copied, told)
                await copied.ended()
        except TimeoutError:
            reason = f"the two were not done within {self._seconds:g} seconds"
        found = [] if reason else differences(copied.agent.facts, told.facts)
        verdict = "failed" if reason else "differs" if found else "same"
        turn = copied.turn
        await self._reporter.write(
            session_id=turn.session_id, turn_id=turn.turn_id, agent=turn.agent.name, verdict=verdict, differences=found,
            reason=reason,
        )

    async def _heard_out(self, copied: "_TurnRecording", told: TurnStructure) -> None:
        try:
            await self._listen(copied, told)
        except GatewayError as error:
            told.fail(error)
        except Exception as error:  # nothing the shadow throws may reach the turn
            log.exception("shadow_crashed", turn=copied.turn.turn_id)
            told.fail(error)

    async def _listen(self, copied: "_TurnRecording", told: TurnStructure) -> None:
        spoken, shade = 0, _ShadowTurn(copied, told)
        async with aclosing(self._shadow.run(shade)) as speech:
            async for telling in speech:
                for said in events_of(telling):
                    spoken += 1
                    if spoken > MAX_EVENTS:
                        return
                    told.say(said)
                    self._keep(copied.turn.session_id, said)

    def _keep(self, session_id: str, said: BackendEvent) -> None:
        """What the shadow wants remembered of a session is remembered here, and nowhere else."""
        if isinstance(said, m.SessionUpdated) and said.metadata is not None:
            self._metadata[session_id] = said.metadata
            if len(self._metadata) > 10_000:
                del self._metadata[next(iter(self._metadata))]


class _TurnRecording:
    """One turn and what the agent made of it, for the shadow to be compared with."""

    def __init__(self, turn: Turn, metadata: Mapping[str, Any]) -> None:
        self.turn = turn
        self.metadata = metadata
        self.agent = TurnStructure()
        self.over = False
        self.answers: list[tuple[m.AnyAsk, m.Answer]] = []
        self.watched = _ObservedTurn(self)
        self._news = asyncio.Event()

    def answer(self, asks: Sequence[m.AnyAsk], answers: Sequence[m.Answer]) -> None:
        self.answers += zip(asks, answers, strict=True)
        self._tell()

    def end(self) -> None:
        self.over = True
        self._tell()

    async def news(self) -> None:
        """Wait until the agent was answered something, or is over."""
        await self._news.wait()

    async def ended(self) -> None:
        while not self.over:
            await self.news()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class _TurnCopy:
    """What both may know of the turn."""

    def __init__(self, copied: _TurnRecording) -> None:
        self._copied, self._turn = copied, copied.turn
        self.session_id, self.turn_id = self._turn.session_id, self._turn.turn_id
        self.agent: m.AgentCard = self._turn.agent
        self.command: m.SendMessage | m.Compact = self._turn.command
        self.history: Sequence[m.HistoryEntry] = self._turn.history
        self.asked: Sequence[m.AnyAsk] = ()

    @property
    def settings(self) -> m.Settings:
        return self._turn.settings


class _ObservedTurn(_TurnCopy):
    """The turn as the agent has it; what it asks and is answered is taken note of."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        return self._turn.metadata

    def mint(self, prefix: str) -> str:
        return self._turn.mint(prefix)

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        self.asked = asks
        self._copied.agent.ask(asks, scope_id)
        answers = await self._turn.ask(*asks, scope_id=scope_id)
        self._copied.answer(asks, answers)
        return answers


class _ShadowTurn(_TurnCopy):
    """The turn as the shadow has it: it is answered what the agent was answered, and nobody is asked twice."""

    def __init__(self, copied: _TurnRecording, told: TurnStructure) -> None:
        super().__init__(copied)
        self.metadata, self.mint = copied.metadata, make_mint()
        self._structure = told
        self._used: set[int] = set()

    async def ask(self, *asks: m.AnyAsk, scope_id: str = m.ROOT) -> list[m.Answer]:
        self.asked = asks
        self._structure.ask(asks, scope_id)
        return [await self._answer(ask) for ask in asks]

    async def _answer(self, ask: m.AnyAsk) -> m.Answer:
        while True:
            for number, (asked, answer) in enumerate(self._copied.answers):
                if number not in self._used and type(asked) is type(ask):
                    self._used.add(number)
                    return answer
            if self._copied.over:
                return m.Withdraw(request_id="")
            await self._copied.news()
