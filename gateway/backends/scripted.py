"""An agent that plays a scenario: for testing clients, and for testing what becomes of an agent's nonsense."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
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
    ScopeMessage,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    StopReason,
    ToolCall,
    ToolOrigin,
    ToolReturned,
    text_of,
)
from gateway.ports import Clock, Said, Scoped, Turn
from gateway.speech import Pen, Speech

from . import steps as words
from .acts import compaction
from .round import Round
from .scenario import Scenario
from .stage import Sleep
from .tools import Tool, builtin

Says = Iterable[Said]

FAULTS: dict[FaultCode, type[GatewayError]] = {
    FaultCode.INTERNAL: GatewayError,
    **{error.code: error for error in vars(errors).values()
       if isinstance(error, type) and issubclass(error, GatewayError) and GatewayError in error.__bases__},
}
"""The error to raise for each code."""


class ScriptedBackend:
    """Does in each turn what its scenario says."""

    def __init__(self, scenario: Scenario, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep) -> None:
        self._scenario, self._sleep, self._tools = scenario, sleep, builtin(clock)

    async def run(self, turn: Turn) -> Speech:
        if isinstance(turn.command, Compact):
            yield compaction(turn)
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

    async def close(self) -> None:
        pass


class _Player:
    """Plays steps with one pen; a message is opened by what is said in it, and ended by what cannot be."""

    def __init__(self, turn: Turn, pen: Pen, tools: Mapping[str, Tool], sleep: Sleep, message: str) -> None:
        self._turn, self._pen, self._tools, self._sleep = turn, pen, tools, sleep
        self._calls: list[ToolCall] = []
        self._names = {"message": message, "answer": ""}
        self.last_words = ""
        self.stop_reason = StopReason.END_TURN

    async def play(self, steps: Sequence[Any]) -> Speech:
        """All the steps, and what they left to be done."""
        for step in (*unrolled(steps), words.Stop(stop=StopReason.END_TURN)):
            if type(step) not in _AMID_CALLS:
                async with aclosing(self._carried_out()) as said:
                    async for event in said:
                        yield event
            if (ends := _ENDS.get(type(step))) is not None:
                for event in self._pen.close(stop_reason=ends(step)):
                    yield event
            if isinstance(step, words.Fork):
                async with aclosing(self._fork(step)) as said:
                    async for event in said:
                        yield event
                continue
            for event in await _PLAYS[type(step)](self, step):
                yield event
            if isinstance(step, words.Stop):
                self.stop_reason = step.stop
                return

    async def _carried_out(self) -> Speech:
        """The calls whose results the scenario does not give."""
        if not self._calls:
            return
        for event in self._pen.close(stop_reason=StopReason.TOOL_USE):
            yield event
        calls, self._calls = self._calls, []
        round = Round(self._turn, self._pen, self._tools)
        async with aclosing(round.run(calls)) as said:
            async for event in said:
                yield event
        self._names["answer"] = "; ".join(text_of(back.content) for back in round.returned.values())

    async def _fork(self, step: words.Fork) -> Speech:
        """A sub-agent with a pen of its own."""
        pen = Pen(self._turn, self._turn.mint("scope"))
        yield pen.say(ScopeOpened(parent=self._pen.scope_id, agent=step.fork, title=step.fork))
        yield self._pen.say(ScopeMessage(
            sender=self._pen.scope_id, recipient=pen.scope_id, content=self._names["message"]))
        child = _Player(self._turn, pen, self._tools, self._sleep, self._names["message"])
        async with aclosing(child.play(step.steps)) as said:
            async for event in said:
                yield event
        yield pen.say(ScopeMessage(
            sender=pen.scope_id, recipient=self._pen.scope_id, content=child.last_words))
        yield pen.say(ScopeStatusChanged(status=ScopeStatus.ENDED, stop_reason=child.stop_reason))

    # -- one short method per step ----------------------------------------------------------------------------------

    def _open(self) -> list[Said]:
        return [] if self._pen.in_message else [self._pen.start_message(model="scripted")]

    def _filled(self, text: str) -> str:
        """The text with `{message}` and `{answer}` in it put in."""
        return re.sub(r"\{(message|answer)\}", lambda match: self._names[match[1]], text)

    async def _say(self, step: words.Say) -> Says:
        self.last_words = self._filled(step.say)
        deltas = pieces(self.last_words, step.chunks)
        return [*self._open(), self._pen.start(), *map(self._pen.delta, deltas), self._pen.end()]

    async def _think(self, step: words.Think) -> Says:
        deltas = pieces(self._filled(step.think), step.chunks)
        start = [*self._open(), self._pen.start(BlockKind.THINKING)]
        return [*start, *map(self._pen.delta, deltas), self._pen.end(signature=step.signature)]

    async def _image(self, step: words.Image) -> Says:
        return [*self._open(), *self._pen.image(step.image)]

    async def _data(self, step: words.Data) -> Says:
        return [*self._open(), *self._pen.data(step.data.type, step.data.content)]

    async def _annotate(self, step: words.Annotate) -> Says:
        return [*self._open(), *(self._pen.annotate(topic, content) for topic, content in step.annotate.items())]

    async def _call(self, step: words.Call) -> Says:
        call = step.call
        said = [*self._open(), *self._pen.call(
            call.name, call.input, call_id=call.id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )]
        self._calls.append(self._pen.calls[-1])
        return said

    async def _result(self, step: words.Returned) -> Says:
        """A result that belongs to no call is said all the same: nonsense is what scenarios are for."""
        result = words.ResultShape(content=step.result) if isinstance(step.result, str) else step.result
        call = next((call for call in self._calls if result.of in (None, call.call_id)), None)
        if call is not None:
            self._calls.remove(call)
        self._names["answer"] = self._filled(result.content)
        returned = ToolReturned(
            call_id=call.call_id if call else result.of or "", origin=call.origin if call else ToolOrigin.BUILTIN,
            content=self._names["answer"], is_error=result.is_error, duration_ms=result.duration_ms, meta=result.meta,
        )
        return [*self._pen.close(stop_reason=StopReason.TOOL_USE), self._pen.say(returned)]

    async def _ask(self, step: words.Asking) -> Says:
        answers = await self._turn.ask(*step.ask, scope_id=self._pen.scope_id)
        self._names["answer"] = "; ".join(map(in_words, answers))
        return ()

    async def _end(self, step: words.End | words.Stop) -> Says:
        return ()

    async def _delay(self, step: words.Delay) -> Says:
        await self._sleep(step.delay)
        return ()

    async def _hang(self, step: words.Hang) -> Says:
        await asyncio.Event().wait()
        return ()

    async def _fail(self, step: words.Fail) -> Says:
        raise FAULTS[step.fail.code](step.fail.message)

    async def _raise(self, step: words.Raise) -> Says:
        raise RuntimeError(step.error)

    async def _event(self, step: words.Raw) -> Says:
        return [self._pen.say(step.event) if step.scope is None else Scoped(step.scope, step.event)]


_PLAYS: dict[type[words.Shape], Callable[[_Player, Any], Awaitable[Says]]] = {
    words.Say: _Player._say, words.Think: _Player._think, words.Image: _Player._image, words.Data: _Player._data,
    words.Annotate: _Player._annotate, words.End: _Player._end, words.Stop: _Player._end, words.Call: _Player._call,
    words.Returned: _Player._result, words.Asking: _Player._ask, words.Delay: _Player._delay, words.Hang: _Player._hang,
    words.Fail: _Player._fail, words.Raise: _Player._raise, words.Raw: _Player._event,
}
_AMID_CALLS = frozenset((
    words.Call, words.Returned, words.Raw, words.Delay, words.Hang, words.Fail, words.Raise,
))
"""Steps that leave open calls as they are; before any other, calls without a result are carried out."""

_ENDS: dict[type[words.Shape], Callable[[Any], StopReason]] = {
    words.End: lambda step: step.end,
    words.Stop: lambda step: step.stop,
    words.Asking: lambda step: StopReason.NEEDS_INPUT,
    words.Fork: lambda step: StopReason.TOOL_USE,
}
"""Steps before which the message ends, and why it does."""


def unrolled(steps: Sequence[Any]) -> Iterator[Any]:
    """The steps with what is repeated written out."""
    for step in steps:
        if isinstance(step, words.Repeat):
            for _ in range(step.repeat):
                yield from unrolled(step.steps)
        else:
            yield step


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


