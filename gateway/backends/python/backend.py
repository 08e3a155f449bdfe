"""The python backend: it runs a function once per turn, on the event loop if it is async, else in a thread."""

import asyncio
import inspect
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, closing, nullcontext
from types import FrameType
from typing import Any

import structlog

import gateway.model as m
from gateway.client import AddressPolicy, BackendEvents
from gateway.errors import GatewayError, Unsupported
from gateway.ports import Addresses, BackendEvent, Turn

from ..gateway_tools import GatewayTools
from .agent_function import AgentFunction
from .reply_writer import ReplyWriter, UnsupportedOutput
from .turn import AgentTurn, BlockingTurn
from .watchdog import LoopWatchdog, frame_location
from .worker import MAX_AHEAD, AskRequest, Pipe, ThreadRunner

log = structlog.get_logger("dragoman.python")

CANCEL_SECONDS = 2.0
"""Seconds that a function may go on after its turn has ended, before the log reports it."""


class PythonBackend:
    """Runs its function once per turn."""

    def __init__(
        self,
        agent: AgentFunction,
        *,
        threads: int = 64,
        blocked_seconds: float = 2.0,
        patience: float = CANCEL_SECONDS,
        addresses: Addresses | None = None,
    ) -> None:
        self._agent, self._patience = agent, patience
        self._addresses: Addresses = addresses or AddressPolicy()
        self._threads, self._watchdog = ThreadRunner(threads), LoopWatchdog(blocked_seconds)
        self._hanging: set[asyncio.Task[None]] = set()

    async def run(self, turn: Turn) -> BackendEvents:
        if isinstance(turn.command, m.Compact):
            raise Unsupported(f"The agent '{turn.agent.name}' cannot compact its history.")
        pipe, tools = Pipe(), GatewayTools(turn, self._addresses)
        function_run = FunctionRun(self._agent, turn, pipe, self._threads, tools)
        task = asyncio.create_task(self._watched_run(function_run), name=function_run.name)
        try:
            while (batches := await pipe.take()) is not None:
                for batch in batches:
                    if isinstance(batch, AskRequest):
                        await _ask_people(turn, batch)
                        continue
                    for event in batch:
                        yield event
        finally:
            await self._cancel(task, turn)
            await tools.close()

    async def close(self) -> None:
        """Cancel functions that go on after their turn; threads cannot be cancelled."""
        for task in self._hanging:
            task.cancel()
        if self._hanging:
            await asyncio.wait(self._hanging, timeout=self._patience)

    async def _watched_run(self, function_run: "FunctionRun") -> None:
        with self._watchdog.over(function_run.agent_name, self._agent):
            await function_run.run()

    async def _cancel(self, task: asyncio.Task[None], turn: Turn) -> None:
        task.cancel()
        await asyncio.wait([task], timeout=self._patience)
        if not task.done():
            self._hanging.add(task)
            task.add_done_callback(self._hanging.discard)
            log.warning(
                "agent_still_running",
                agent=turn.agent.name,
                turn=turn.turn_id,
                function=self._agent.reference,
                at=_thread_location(task.get_name(), self._agent),
                seconds=self._patience,
            )


async def _ask_people(turn: Turn, pause: AskRequest) -> None:
    """Ask people for the function; an invalid ask raises in the function."""
    try:
        answers = await turn.ask(*pause.asks, scope_id=pause.scope_id)
    except (GatewayError, m.GrammarError) as error:
        if not pause.answers.done():
            pause.answers.set_exception(error)
    else:
        if not pause.answers.done():
            pause.answers.set_result(answers)


class FunctionRun:
    """One run of the function."""

    def __init__(
        self, agent: AgentFunction, turn: Turn, pipe: Pipe, threads: ThreadRunner, tools: GatewayTools,
    ) -> None:
        self.agent_name, self.name = turn.agent.name, f"agent {turn.agent.name} {turn.turn_id}"
        self._agent, self._pipe, self._threads = agent, pipe, threads
        self._reply = ReplyWriter(turn)
        self._turn = AgentTurn(turn, pipe, self._reply, tools)

    async def run(self) -> None:
        with self._pipe:
            if self._agent.is_async:
                made = self._agent.call(self._turn)
            else:
                made = await self._threads.run(self._in_thread, self.name, self._pipe.halt)
            if hasattr(made, "__aiter__"):
                await self._iterate(made)
            elif inspect.isawaitable(made):
                await self._pipe.put(self._reply_with(await made), MAX_AHEAD)
            await self._pipe.put(self._reply.close(), MAX_AHEAD)

    async def _iterate(self, made: AsyncIterator[object]) -> None:
        closed: AbstractAsyncContextManager[Any] = aclosing(made) if inspect.isasyncgen(made) else nullcontext()
        async with closed:
            async for item in made:
                await self._pipe.put(
                    self._events(item, _generator_frame(made)), MAX_AHEAD if isinstance(item, str) else 0
                )

    # -- in a thread ----------------------------------------------------------------------------------------------

    def _in_thread(self) -> object:
        """Call the function and emit its output; only an awaitable or an async iterator is returned."""
        made = self._agent.call(BlockingTurn(self._turn, self._pipe))
        if hasattr(made, "__aiter__") or inspect.isawaitable(made):
            return made
        if isinstance(made, Iterator):
            self._iterate_in_thread(made)
        else:
            self._pipe.put_from_thread(self._reply_with(made), MAX_AHEAD)
        return None

    def _iterate_in_thread(self, made: Iterator[object]) -> None:
        closed: AbstractContextManager[Any] = closing(made) if inspect.isgenerator(made) else nullcontext()
        with closed:
            for item in made:
                self._pipe.put_from_thread(
                    self._events(item, _generator_frame(made)), MAX_AHEAD if isinstance(item, str) else 0
                )

    # -- output ---------------------------------------------------------------------------------------------------

    def _reply_with(self, value: object) -> list[BackendEvent]:
        """The events of a returned value; None is allowed after other output."""
        return [] if value is None and self._reply.has_begun else self._events(value)

    def _events(self, item: object, frame: FrameType | None = None) -> list[BackendEvent]:
        try:
            return self._reply.take(item)
        except UnsupportedOutput:
            log.error(
                "agent_output_unsupported", agent=self.agent_name, function=self._agent.reference,
                type=type(item).__name__, at=frame_location(frame) or str(self._agent.location),
            )
            raise


def _generator_frame(made: object) -> FrameType | None:
    """The frame in which a generator is suspended."""
    return getattr(made, "ag_frame", None) or getattr(made, "gi_frame", None)


def _thread_location(name: str, agent: AgentFunction) -> str | None:
    """The line that the thread of that name executes; None for a task."""
    ident = next((thread.ident for thread in threading.enumerate() if thread.name == name), None)
    frame = sys._current_frames().get(ident) if ident else None
    return frame_location(frame, {str(file) for file in agent.source.files}) or frame_location(frame)
