"""The tool round: the calls of one message carried out, each according to its origin and permission."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing

from gateway.model import (
    Answer,
    AnyAsk,
    ClientToolAsk,
    Content,
    DecidePermission,
    Permission,
    PermissionAsk,
    ReturnResult,
    SendMessage,
    ToolCall,
    ToolOrigin,
    ToolOutput,
    ToolReturned,
    ToolStatus,
    ToolStatusChanged,
)
from gateway.ports import Clock, Said, Turn
from gateway.speech import Pen, Speech

from .tools import Result, Tool, is_planning

Told = ToolOutput | ToolReturned


class Round:
    """Carries out calls whose blocks have ended; afterwards `returned` holds what each gave back, by call id.

    What is allowed runs at once and together; what a person or the client must settle is asked in one go after that.
    """

    def __init__(self, turn: Turn, pen: Pen, tools: Mapping[str, Tool], *, clock: Clock = time.monotonic) -> None:
        self.returned: dict[str, ToolReturned] = {}
        self._turn, self._pen, self._tools, self._clock = turn, pen, tools, clock

    async def run(self, calls: Sequence[ToolCall] | None = None) -> Speech:
        """The events of the round; the calls are those of the pen's last message unless others are given.

        A provider's own calls are left alone: they come back by themselves.
        """
        calls = [c for c in (self._pen.calls if calls is None else calls) if c.origin is not ToolOrigin.PROVIDER]
        refused = [call for call in calls if call.permission is Permission.DENY or is_planning(self._turn)]
        waiting = [call for call in calls if call not in refused and _must_ask(call, self._turn)]
        ready = [call for call in calls if call not in refused and call not in waiting]
        for call in refused:
            yield self._return(call, "Tool call denied: the session does not allow it", is_error=True)
        if ready:
            for call in waiting:
                yield self._status(call, ToolStatus.PENDING)
        async with aclosing(self._together(ready)) as said:
            async for event in said:
                yield event
        if waiting:
            async with aclosing(self._settle(waiting)) as said:
                async for event in said:
                    yield event

    async def _settle(self, calls: Sequence[ToolCall]) -> Speech:
        for call in calls:
            yield self._status(call, ToolStatus.AWAITING_INPUT)
        answers = await self._turn.ask(*map(_ask, calls), scope_id=self._pen.scope_id)
        async with aclosing(self.settle(calls, answers)) as said:
            async for event in said:
                yield event

    async def settle(self, calls: Sequence[ToolCall], answers: Sequence[Answer]) -> Speech:
        """What answers make of the calls that waited for them, each in its place."""
        granted = []
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, DecidePermission) and answer.granted:
                granted.append(call)
                continue
            for event in self._settled(call, answer):
                yield event
        async with aclosing(self._together(granted)) as said:
            async for event in said:
                yield event

    def _settled(self, call: ToolCall, answer: Answer) -> Iterator[Said]:
        """What an answer makes of a call that is not to be carried out here."""
        match answer:
            case DecidePermission(reason=reason):
                yield self._return(call, f"Tool call denied: {reason}" if reason else "Tool call denied", is_error=True)
            case ReturnResult(content=content, is_error=is_error):
                yield self._return(call, content, is_error=is_error)
            case _:
                yield self._status(call, ToolStatus.CANCELLED)
                yield self._return(call, "Tool call cancelled", is_error=True)

    # -- carrying out ---------------------------------------------------------------------------------------------

    async def _together(self, calls: Sequence[ToolCall]) -> Speech:
        """Run the calls side by side; each result comes as soon as it is there."""
        for call in calls:
            yield self._status(call, ToolStatus.RUNNING)
        heard: asyncio.Queue[Told | None] = asyncio.Queue()
        tasks = [asyncio.ensure_future(self._carry_out(call, heard)) for call in calls]
        try:
            running = len(tasks)
            while running:
                told = await heard.get()
                if told is None:
                    running -= 1
                else:
                    yield self._pen.say(told)
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _carry_out(self, call: ToolCall, heard: "asyncio.Queue[Told | None]") -> None:
        since = self._clock()
        try:
            result = await self._result(call, heard)
            duration = max(0, round((self._clock() - since) * 1000))
            heard.put_nowait(self._note(call, result, duration))
        finally:
            heard.put_nowait(None)

    async def _result(self, call: ToolCall, heard: "asyncio.Queue[Told | None]") -> Result:
        tool = self._tools.get(call.name)
        if tool is None:
            return Result(content=f"There is no tool {call.name}", is_error=True)
        return await tool.run(
            call.input, lambda text: heard.put_nowait(ToolOutput(call_id=call.call_id, delta=text)),
        )

    # -- saying ---------------------------------------------------------------------------------------------------

    def _status(self, call: ToolCall, status: ToolStatus) -> Said:
        return self._pen.say(ToolStatusChanged(call_id=call.call_id, status=status))

    def _return(self, call: ToolCall, content: Content, *, is_error: bool) -> Said:
        return self._pen.say(self._note(call, Result(content=content, is_error=is_error)))

    def _note(self, call: ToolCall, result: Result, duration_ms: int | None = None) -> ToolReturned:
        returned = ToolReturned(
            call_id=call.call_id, content=result.content, is_error=result.is_error, origin=call.origin,
            duration_ms=duration_ms, meta=result.meta,
        )
        self.returned[call.call_id] = returned
        return returned


def _must_ask(call: ToolCall, turn: Turn) -> bool:
    """Where nobody is there to be asked, what may be asked for may be done."""
    headless = isinstance(turn.command, SendMessage) and turn.command.headless
    return call.origin is ToolOrigin.CLIENT or (call.permission is Permission.ASK and not headless)


def _ask(call: ToolCall) -> AnyAsk:
    if call.origin is ToolOrigin.CLIENT:
        return ClientToolAsk(call=call)
    return PermissionAsk(call=call, description=f"Run {call.display_name or call.name}?")
