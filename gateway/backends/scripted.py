"""An agent that plays a scenario: for testing clients, and for testing what becomes of an agent's nonsense."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from gateway import errors
from gateway.errors import GatewayError
from gateway.model import (
    Answer,
    AnswerQuestion,
    BlockKind,
    Compact,
    ContinueTurn,
    DecidePermission,
    FaultCode,
    ReturnResult,
    Role,
    RollBack,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    StopReason,
    ToolCall,
    ToolReturned,
    Trigger,
    text_of,
)
from gateway.ports import Clock, Said, Scoped, Turn

from . import steps as words
from .acts import compaction
from .pen import Pen, Speech
from .round import Round
from .scenario import Scenario
from .tools import builtin

FAULTS: dict[FaultCode, type[GatewayError]] = {
    FaultCode.INTERNAL: GatewayError,
    **{error.code: error for error in vars(errors).values()
       if isinstance(error, type) and issubclass(error, GatewayError) and GatewayError in error.__bases__},
}
"""The error to raise for each code."""


class ScriptedBackend:
    """Does in each turn what its scenario says."""

    def __init__(
        self, scenario: Scenario, *, clock: Clock = time.time, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._scenario, self._sleep, self._tools = scenario, sleep, builtin(clock)

    async def run(self, turn: Turn) -> Speech:
        if isinstance(turn.command, Compact):
            yield compaction(turn, Trigger.MANUAL)
            return
        message = text_of(turn.command.content)
        number = sum(entry.role is Role.USER for entry in turn.history) or 1
        steps = self._scenario.steps(message, number)
        if steps is None:
            raise errors.BackendFailed(f"the scenario has nothing to say to {message!r}")
        player = _Player(turn, Pen(turn), self._tools, self._sleep, message)
        async with aclosing(player.play(steps)) as said:
            async for event in said:
                yield event
        async with aclosing(player.finish(StopReason.END_TURN)) as said:
            async for event in said:
                yield event

    async def close(self) -> None:
        pass


class _Player:
    """Plays steps with one pen; a message is opened by what is said in it, and ended by what cannot be."""

    def __init__(self, turn: Turn, pen: Pen, tools: Any, sleep: Callable[[float], Awaitable[None]], message: str) -> None:
        self.over = False
        self._turn, self._pen, self._tools, self._sleep = turn, pen, tools, sleep
        self._calls: list[ToolCall] = []
        self._names = {"message": message, "answer": ""}

    async def play(self, steps: Sequence[Any]) -> Speech:
        for step in steps:
            if self.over:
                return
            async with aclosing(_PLAYS[type(step)](self, step)) as said:
                async for event in said:
                    yield event

    async def finish(self, stop_reason: StopReason) -> Speech:
        """Carry out what calls are left, and end the message."""
        async with aclosing(self._carried_out()) as said:
            async for event in said:
                yield event
        for event in self._shut(stop_reason):
            yield event

    def _open(self) -> Iterator[Said]:
        if not self._pen.in_message:
            yield self._pen.start_message(model="scripted")

    def _shut(self, stop_reason: StopReason) -> Iterator[Said]:
        yield from self._pen.close(stop_reason=stop_reason)

    def _filled(self, text: str) -> str:
        """The text with `{message}` and `{answer}` in it put in."""
        return re.sub(r"\{(message|answer)\}", lambda match: self._names[match[1]], text)

    async def _carried_out(self) -> Speech:
        if not self._calls:
            return
        for event in self._shut(StopReason.TOOL_USE):
            yield event
        calls, self._calls = self._calls, []
        round = Round(self._turn, self._pen, self._tools)
        async with aclosing(round.run(calls)) as said:
            async for event in said:
                yield event
        self._names["answer"] = "; ".join(text_of(back.content) for back in round.returned.values())

    async def _say(self, step: words.Say | words.Think) -> Speech:
        async with aclosing(self._carried_out()) as said:
            async for event in said:
                yield event
        for event in self._open():
            yield event
        thinking = isinstance(step, words.Think)
        yield self._pen.start(BlockKind.THINKING if thinking else BlockKind.TEXT)
        for piece in pieces(self._filled(step.think if isinstance(step, words.Think) else step.say), step.chunks):
            yield self._pen.delta(piece)
        yield self._pen.end(signature=step.signature if isinstance(step, words.Think) else None)

    async def _show(self, step: words.Image | words.Data | words.Annotate) -> Speech:
        async with aclosing(self._carried_out()) as said:
            async for event in said:
                yield event
        for event in (*self._open(), *self._shown(step)):
            yield event

    def _shown(self, step: words.Image | words.Data | words.Annotate) -> list[Said]:
        if isinstance(step, words.Image):
            return self._pen.image(step.image)
        if isinstance(step, words.Data):
            return self._pen.data(step.data.type, step.data.content)
        return [self._pen.annotate(topic, content) for topic, content in step.annotate.items()]

    async def _end(self, step: words.End) -> Speech:
        async with aclosing(self.finish(step.end)) as said:
            async for event in said:
                yield event

    async def _stop(self, step: words.Stop) -> Speech:
        self.over = True
        async with aclosing(self.finish(step.stop)) as said:
            async for event in said:
                yield event

    async def _call(self, step: words.Call) -> Speech:
        call = step.call
        for event in (*self._open(), *self._pen.call(
            call.name, call.input, call_id=call.id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )):
            yield event
        self._calls.append(self._pen.calls[-1])

    async def _result(self, step: words.Returned) -> Speech:
        result = words.ResultShape(content=step.result) if isinstance(step.result, str) else step.result
        for event in self._shut(StopReason.TOOL_USE):
            yield event
        call = next((call for call in self._calls if result.of in (None, call.call_id)), None)
        if call is not None:
            self._calls.remove(call)
        self._names["answer"] = self._filled(result.content)
        yield self._pen.say(ToolReturned(
            call_id=call.call_id if call else result.of or "", content=self._names["answer"], is_error=result.is_error,
            duration_ms=result.duration_ms, meta=result.meta, **({"origin": call.origin} if call else {}),
        ))

    async def _ask(self, step: words.Asking) -> Speech:
        async with aclosing(self.finish(StopReason.NEEDS_INPUT)) as said:
            async for event in said:
                yield event
        answers = await self._turn.ask(*step.ask, scope_id=self._pen.scope_id)
        self._names["answer"] = "; ".join(map(in_words, answers))

    async def _delay(self, step: words.Delay) -> Speech:
        await self._sleep(step.delay)
        for event in ():
            yield event

    async def _hang(self, step: words.Hang) -> Speech:
        await asyncio.Event().wait()
        for event in ():
            yield event

    async def _fail(self, step: words.Fail) -> Speech:
        for event in ():
            yield event
        raise FAULTS[step.fail.code](step.fail.message)

    async def _raise(self, step: words.Raise) -> Speech:
        for event in ():
            yield event
        raise RuntimeError(step.error)

    async def _event(self, step: words.Raw) -> Speech:
        yield self._pen.say(step.event) if step.scope is None else Scoped(step.scope, step.event)

    async def _repeat(self, step: words.Repeat) -> Speech:
        for _ in range(step.repeat):
            async with aclosing(self.play(step.steps)) as said:
                async for event in said:
                    yield event

    async def _fork(self, step: words.Fork) -> Speech:
        """A sub-agent with a pen of its own; the words it knows are the same."""
        pen = Pen(self._turn, self._turn.mint("scope"))
        yield pen.say(ScopeOpened(parent=self._pen.scope_id, agent=step.fork, title=step.fork))
        yield pen.say(ScopeStatusChanged(status=ScopeStatus.RUNNING))
        child = _Player(self._turn, pen, self._tools, self._sleep, self._names["message"])
        for speech in (child.play(step.steps), child.finish(StopReason.END_TURN)):
            async with aclosing(speech) as said:
                async for event in said:
                    yield event
        yield pen.say(ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=StopReason.END_TURN))


_PLAYS: dict[type[words.Shape], Callable[[_Player, Any], Speech]] = {
    words.Say: _Player._say, words.Think: _Player._say, words.Image: _Player._show, words.Data: _Player._show,
    words.Annotate: _Player._show, words.End: _Player._end, words.Stop: _Player._stop, words.Call: _Player._call,
    words.Returned: _Player._result, words.Asking: _Player._ask, words.Delay: _Player._delay, words.Hang: _Player._hang,
    words.Fail: _Player._fail, words.Raise: _Player._raise, words.Raw: _Player._event, words.Repeat: _Player._repeat,
    words.Fork: _Player._fork,
}


def pieces(text: str, count: int | None) -> list[str]:
    """The text in so many pieces of about one size, or word by word."""
    if count is None:
        return re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(text) // count))
    return [text[at:at + size] for at in range(0, len(text), size)]


def in_words(answer: Answer) -> str:
    """An answer as a scenario may repeat it."""
    match answer:
        case AnswerQuestion(selections=selections, custom=custom, message=message):
            chosen = [f"{number}: {', '.join(map(str, picked))}" for number, picked in selections.items()]
            return "; ".join([*chosen, *custom.values(), *([message] if message else [])])
        case DecidePermission(granted=granted, reason=reason):
            return "granted" if granted else f"denied: {reason}" if reason else "denied"
        case ReturnResult(content=content):
            return text_of(content)
        case ContinueTurn(proceed=proceed):
            return "proceed" if proceed else "stop"
        case RollBack(option=option):
            return option or "no option"
    return "withdrawn"


