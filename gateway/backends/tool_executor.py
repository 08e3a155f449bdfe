"""Executes the tool calls of one message, each according to its origin and permission."""

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import gateway.model as m
from gateway.client import BackendEvents, EventWriter
from gateway.ports import BackendEvent, Clock, Turn

from .tools import OutputSink, Tool, ToolCallResult, is_headless, is_planning

ToolEvent = m.ToolStatusChanged | m.ToolOutput | m.ToolReturned
CALL_CANCELLED, CALL_DENIED = "Tool call cancelled", "Tool call denied"
"""Results of calls that nobody executed, as models and clients see them."""


class ToolExecutor:
    """Executes calls whose blocks have ended; afterwards `results` holds the result of each, by call id.

    Calls that need no answer run first, in parallel. Then one ask per remaining call goes out, all at once: for
    permission, or for the result of a client's tool.
    """

    def __init__(
        self, turn: Turn, pen: EventWriter, tools: Mapping[str, Tool], *, clock: Clock = time.monotonic
    ) -> None:
        self.results: dict[str, m.ToolReturned] = {}
        self._turn, self._writer, self._tools, self._clock = turn, pen, tools, clock

    @property
    def returned(self) -> dict[str, m.ToolReturned]:
        """The old name of `results`, for classes of users."""
        warnings.warn("ToolExecutor.returned is called results now; the old name will be removed", FutureWarning, 2)
        return self.results

    async def run(self, calls: Sequence[m.ToolCall] | None = None) -> BackendEvents:
        """The events of the calls: those of the writer's last message, unless others are given.

        Calls that the provider runs itself are skipped: their results come from the provider.
        """
        calls = [c for c in (self._writer.calls if calls is None else calls) if c.origin is not m.ToolOrigin.PROVIDER]
        refused = [call for call in calls if call.permission is m.Permission.DENY or is_planning(self._turn)]
        waiting = [call for call in calls if call not in refused and needs_answer(call, self._turn)]
        ready = [call for call in calls if call not in refused and call not in waiting]
        for call in refused:
            yield self._return(call, f"{CALL_DENIED}: the session does not allow it", is_error=True)
        for call in waiting if ready else ():
            yield self._status(call, m.ToolStatus.PENDING)
        async with _RunningCalls(self._execute, ready) as running:
            while (event := await running.read()) is not None:
                yield self._writer.emit(event)
        if not waiting:
            return
        for call in waiting:
            yield self._status(call, m.ToolStatus.AWAITING_INPUT)
        answers = await self._turn.ask(*map(ask_about, waiting), scope_id=self._writer.scope_id)
        for settled in self._settle(waiting, answers):
            yield settled
        async with _RunningCalls(self._execute, _granted(waiting, answers)) as running:
            while (event := await running.read()) is not None:
                yield self._writer.emit(event)

    async def resume(self, calls: Sequence[m.ToolCall], answers: Sequence[m.Answer]) -> BackendEvents:
        """The events of calls that waited for these answers; answers are in the order of the calls."""
        for settled in self._settle(calls, answers):
            yield settled
        async with _RunningCalls(self._execute, _granted(calls, answers)) as running:
            while (event := await running.read()) is not None:
                yield self._writer.emit(event)

    def _settle(self, calls: Sequence[m.ToolCall], answers: Sequence[m.Answer]) -> Iterator[BackendEvent]:
        """The ends of the calls that are not executed here: denied, executed by the client, or cancelled."""
        for call, answer in zip(calls, answers, strict=True):
            match answer:
                case m.DecidePermission(granted=True):
                    pass
                case m.DecidePermission(reason=reason):
                    yield self._return(call, f"{CALL_DENIED}: {reason}" if reason else CALL_DENIED, is_error=True)
                case m.ReturnResult(content=content, is_error=is_error):
                    yield self._return(call, content, is_error=is_error)
                case _:
                    yield self._status(call, m.ToolStatus.CANCELLED)
                    yield self._return(call, CALL_CANCELLED, is_error=True)

    # -- execution ------------------------------------------------------------------------------------------------

    async def _execute(self, call: m.ToolCall, out: OutputSink) -> m.ToolReturned:
        since, tool = self._clock(), self._tools.get(call.name)
        if tool is None:
            result = ToolCallResult(content=f"There is no tool {call.name}", is_error=True)
        else:
            result = await tool.run(call.input, out)
        return self._note(call, result, max(0, round((self._clock() - since) * 1000)))

    # -- saying ---------------------------------------------------------------------------------------------------

    def _status(self, call: m.ToolCall, status: m.ToolStatus) -> BackendEvent:
        return self._writer.emit(m.ToolStatusChanged(call_id=call.call_id, status=status))

    def _return(self, call: m.ToolCall, content: m.Content, *, is_error: bool) -> BackendEvent:
        return self._writer.emit(self._note(call, ToolCallResult(content=content, is_error=is_error)))

    def _note(self, call: m.ToolCall, result: ToolCallResult, duration_ms: int | None = None) -> m.ToolReturned:
        returned = m.ToolReturned(
            call_id=call.call_id, content=result.content, is_error=result.is_error, origin=call.origin,
            duration_ms=duration_ms, meta=result.meta,
        )
        self.results[call.call_id] = returned
        return returned


class _RunningCalls:
    """Calls that run in parallel, each in a task; leaving the context cancels the tasks that still run."""

    def __init__(
        self, execute: Callable[[m.ToolCall, OutputSink], Awaitable[m.ToolReturned]], calls: Sequence[m.ToolCall],
    ) -> None:
        self._execute, self._unstarted, self._running = execute, list(calls), len(calls)
        self._events: asyncio.Queue[ToolEvent | None] = asyncio.Queue()
        self._calls, self._tasks = calls, list[asyncio.Task[None]]()

    async def __aenter__(self) -> "_RunningCalls":
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def read(self) -> ToolEvent | None:
        """The next event; None after the last result. The calls start once each was reported as running."""
        if self._unstarted:
            return m.ToolStatusChanged(call_id=self._unstarted.pop(0).call_id, status=m.ToolStatus.RUNNING)
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._run(call)) for call in self._calls]
        while self._running:
            event = await self._events.get()
            if event is not None:
                return event
            self._running -= 1
        await asyncio.gather(*self._tasks)
        return None

    async def _run(self, call: m.ToolCall) -> None:
        def out(text: str) -> None:
            self._events.put_nowait(m.ToolOutput(call_id=call.call_id, delta=text))

        try:
            self._events.put_nowait(await self._execute(call, out))
        finally:
            self._events.put_nowait(None)


def _granted(calls: Sequence[m.ToolCall], answers: Sequence[m.Answer]) -> list[m.ToolCall]:
    return [call for call, answer in zip(calls, answers, strict=True)
            if isinstance(answer, m.DecidePermission) and answer.granted]


def needs_answer(call: m.ToolCall, turn: Turn) -> bool:
    """Whether a person or the client must answer; in a headless turn a call that would ask is allowed."""
    return call.origin is m.ToolOrigin.CLIENT or (call.permission is m.Permission.ASK and not is_headless(turn))


def ask_about(call: m.ToolCall) -> m.AnyAsk:
    """The ask for a call: for its result if the client runs it, otherwise for permission."""
    if call.origin is m.ToolOrigin.CLIENT:
        return m.ClientToolAsk(call=call)
    return m.PermissionAsk(call=call, description=f"Run {call.display_name or call.name}?")
