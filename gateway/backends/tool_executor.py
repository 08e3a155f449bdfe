"""The tool round: the calls of one message carried out, each according to its origin and permission."""

import asyncio
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing

import gateway.model as m
from gateway.client import BackendEvents, EventWriter
from gateway.ports import BackendEvent, Clock, Turn

from .tools import Tool, ToolCallResult, is_planning

ToolEvent = m.ToolOutput | m.ToolReturned


class ToolExecutor:
    """Carries out calls whose blocks have ended; afterwards `results` holds what each gave back, by call id.

    What is allowed runs at once and together; what a person or the client must settle is asked in one go after that.
    """

    def __init__(
        self, turn: Turn, pen: EventWriter, tools: Mapping[str, Tool], *, clock: Clock = time.monotonic
    ) -> None:
        self.results: dict[str, m.ToolReturned] = {}
        self._turn, self._pen, self._tools, self._clock = turn, pen, tools, clock

    @property
    def returned(self) -> dict[str, m.ToolReturned]:
        """The old name of `results`, for classes of users."""
        warnings.warn("ToolExecutor.returned is called results now; the old name will be removed", FutureWarning, 2)
        return self.results

    async def run(self, calls: Sequence[m.ToolCall] | None = None) -> BackendEvents:
        """The events of the round; the calls are those of the pen's last message unless others are given.

        A provider's own calls are left alone: they come back by themselves.
        """
        calls = [c for c in (self._pen.calls if calls is None else calls) if c.origin is not m.ToolOrigin.PROVIDER]
        refused = [call for call in calls if call.permission is m.Permission.DENY or is_planning(self._turn)]
        waiting = [call for call in calls if call not in refused and _needs_answer(call, self._turn)]
        ready = [call for call in calls if call not in refused and call not in waiting]
        for call in refused:
            yield self._return(call, "Tool call denied: the session does not allow it", is_error=True)
        if ready:
            for call in waiting:
                yield self._status(call, m.ToolStatus.PENDING)
        async with aclosing(self._run_in_parallel(ready)) as said:
            async for event in said:
                yield event
        if waiting:
            async with aclosing(self._ask_and_resume(waiting)) as said:
                async for event in said:
                    yield event

    async def _ask_and_resume(self, calls: Sequence[m.ToolCall]) -> BackendEvents:
        for call in calls:
            yield self._status(call, m.ToolStatus.AWAITING_INPUT)
        answers = await self._turn.ask(*map(_ask_about, calls), scope_id=self._pen.scope_id)
        async with aclosing(self.resume(calls, answers)) as said:
            async for event in said:
                yield event

    async def resume(self, calls: Sequence[m.ToolCall], answers: Sequence[m.Answer]) -> BackendEvents:
        """What answers make of the calls that waited for them, each in its place."""
        granted = []
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, m.DecidePermission) and answer.granted:
                granted.append(call)
                continue
            for event in self._settled(call, answer):
                yield event
        async with aclosing(self._run_in_parallel(granted)) as said:
            async for event in said:
                yield event

    def _settled(self, call: m.ToolCall, answer: m.Answer) -> Iterator[BackendEvent]:
        """What an answer makes of a call that is not to be carried out here."""
        match answer:
            case m.DecidePermission(reason=reason):
                yield self._return(call, f"Tool call denied: {reason}" if reason else "Tool call denied", is_error=True)
            case m.ReturnResult(content=content, is_error=is_error):
                yield self._return(call, content, is_error=is_error)
            case _:
                yield self._status(call, m.ToolStatus.CANCELLED)
                yield self._return(call, "Tool call cancelled", is_error=True)

    # -- carrying out ---------------------------------------------------------------------------------------------

    async def _run_in_parallel(self, calls: Sequence[m.ToolCall]) -> BackendEvents:
        """Run the calls side by side; each result comes as soon as it is there."""
        for call in calls:
            yield self._status(call, m.ToolStatus.RUNNING)
        heard: asyncio.Queue[ToolEvent | None] = asyncio.Queue()
        tasks = [asyncio.ensure_future(self._execute(call, heard)) for call in calls]
        try:
            running = len(tasks)
            while running:
                told = await heard.get()
                if told is None:
                    running -= 1
                else:
                    yield self._pen.emit(told)
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _execute(self, call: m.ToolCall, heard: "asyncio.Queue[ToolEvent | None]") -> None:
        since = self._clock()
        try:
            result = await self._result(call, heard)
            duration = max(0, round((self._clock() - since) * 1000))
            heard.put_nowait(self._note(call, result, duration))
        finally:
            heard.put_nowait(None)

    async def _result(self, call: m.ToolCall, heard: "asyncio.Queue[ToolEvent | None]") -> ToolCallResult:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolCallResult(content=f"There is no tool {call.name}", is_error=True)
        return await tool.run(
            call.input, lambda text: heard.put_nowait(m.ToolOutput(call_id=call.call_id, delta=text)),
        )

    # -- saying ---------------------------------------------------------------------------------------------------

    def _status(self, call: m.ToolCall, status: m.ToolStatus) -> BackendEvent:
        return self._pen.emit(m.ToolStatusChanged(call_id=call.call_id, status=status))

    def _return(self, call: m.ToolCall, content: m.Content, *, is_error: bool) -> BackendEvent:
        return self._pen.emit(self._note(call, ToolCallResult(content=content, is_error=is_error)))

    def _note(self, call: m.ToolCall, result: ToolCallResult, duration_ms: int | None = None) -> m.ToolReturned:
        returned = m.ToolReturned(
            call_id=call.call_id, content=result.content, is_error=result.is_error, origin=call.origin,
            duration_ms=duration_ms, meta=result.meta,
        )
        self.results[call.call_id] = returned
        return returned


def _needs_answer(call: m.ToolCall, turn: Turn) -> bool:
    """Where nobody is there to be asked, what may be asked for may be done."""
    headless = isinstance(turn.command, m.SendMessage) and turn.command.headless
    return call.origin is m.ToolOrigin.CLIENT or (call.permission is m.Permission.ASK and not headless)


def _ask_about(call: m.ToolCall) -> m.AnyAsk:
    if call.origin is m.ToolOrigin.CLIENT:
        return m.ClientToolAsk(call=call)
    return m.PermissionAsk(call=call, description=f"Run {call.display_name or call.name}?")
