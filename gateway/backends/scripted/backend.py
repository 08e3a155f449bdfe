"""An agent that plays a scenario: for testing clients, and for testing what becomes of an agent's nonsense."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from pydantic import Field

import gateway.model as m
from gateway import errors
from gateway.backends.demo import compaction
from gateway.backends.tool_executor import ToolExecutor
from gateway.backends.tools import Tool, builtin_tools
from gateway.client import BackendEvents, EventWriter
from gateway.errors import GatewayError
from gateway.ports import BackendEvent, Clock, ScopedEvent, Sleep, Turn

from . import scenario_schema as words
from .scenario_loader import Scenario
from .scenario_schema import ScenarioModel

Events = Iterable[BackendEvent]
ERROR_CLASSES: dict[m.FaultCode, type[GatewayError]] = {
    m.FaultCode.INTERNAL: GatewayError,
    **{error.code: error for error in vars(errors).values()
       if isinstance(error, type) and issubclass(error, GatewayError) and GatewayError in error.__bases__},
}
"""The error to raise for each code."""


class ScriptedBackend:
    """Does in each turn what its scenario says."""

    def __init__(self, scenario: Scenario, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep) -> None:
        self._scenario, self._sleep, self._tools = scenario, sleep, builtin_tools(clock)

    async def run(self, turn: Turn) -> BackendEvents:
        if isinstance(turn.command, m.Compact):
            yield compaction(turn)
            return
        message = m.text_of(turn.command.content)
        number = sum(entry.role is m.Role.USER for entry in turn.history) or 1
        steps = self._scenario.steps(message, number)
        if steps is None:
            raise errors.BackendFailed(f"the scenario has no rule for {message!r}")
        player = _ScenarioPlayer(turn, EventWriter(turn), self._tools, self._sleep, message)
        async with aclosing(player.play(steps)) as said:
            async for event in said:
                yield event

    async def close(self) -> None:
        pass


class _ScenarioPlayer:
    """Plays steps with one pen; a message is opened by what is said in it, and ended by what cannot be."""

    def __init__(self, turn: Turn, pen: EventWriter, tools: Mapping[str, Tool], sleep: Sleep, message: str) -> None:
        self._turn, self._pen, self._tools, self._sleep = turn, pen, tools, sleep
        self._calls: list[m.ToolCall] = []
        self._names = {"message": message, "answer": ""}
        self.last_words = ""
        self.stop_reason = m.StopReason.END_TURN

    async def play(self, steps: Sequence[Any]) -> BackendEvents:
        """All the steps, and what they left to be done."""
        for step in (*expand_repeats(steps), words.EndTurnStep(stop=m.StopReason.END_TURN)):
            if type(step) not in _KEEP_CALLS_OPEN:
                async with aclosing(self._carried_out()) as said:
                    async for event in said:
                        yield event
            if (ends := _END_MESSAGE_BEFORE.get(type(step))) is not None:
                for event in self._pen.close(stop_reason=ends(step)):
                    yield event
            if isinstance(step, words.ForkStep):
                async with aclosing(self._fork(step)) as said:
                    async for event in said:
                        yield event
                continue
            for event in await _HANDLERS[type(step)](self, step):
                yield event
            if isinstance(step, words.EndTurnStep):
                self.stop_reason = step.stop
                return

    async def _carried_out(self) -> BackendEvents:
        """The calls whose results the scenario does not give."""
        if not self._calls:
            return
        for event in self._pen.close(stop_reason=m.StopReason.TOOL_USE):
            yield event
        calls, self._calls = self._calls, []
        round = ToolExecutor(self._turn, self._pen, self._tools)
        async with aclosing(round.run(calls)) as said:
            async for event in said:
                yield event
        self._names["answer"] = "; ".join(m.text_of(back.content) for back in round.results.values())

    async def _fork(self, step: words.ForkStep) -> BackendEvents:
        """A sub-agent with a pen of its own."""
        pen = EventWriter(self._turn, self._turn.mint("scope"))
        yield pen.emit(m.ScopeOpened(parent=self._pen.scope_id, agent=step.fork, title=step.fork))
        yield self._pen.emit(m.ScopeMessage(
            sender=self._pen.scope_id, recipient=pen.scope_id, content=self._names["message"]))
        child = _ScenarioPlayer(self._turn, pen, self._tools, self._sleep, self._names["message"])
        async with aclosing(child.play(step.steps)) as said:
            async for event in said:
                yield event
        yield pen.emit(m.ScopeMessage(
            sender=pen.scope_id, recipient=self._pen.scope_id, content=child.last_words))
        yield pen.emit(m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=child.stop_reason))

    # -- one short method per step ----------------------------------------------------------------------------------

    def _open(self) -> list[BackendEvent]:
        return [] if self._pen.in_message else [self._pen.start_message(model="scripted")]

    def _filled(self, text: str) -> str:
        """The text with `{message}` and `{answer}` in it put in."""
        return re.sub(r"\{(message|answer)\}", lambda match: self._names[match[1]], text)

    async def _say(self, step: words.SayStep) -> Events:
        self.last_words = self._filled(step.say)
        deltas = split_text(self.last_words, step.chunks)
        return [*self._open(), self._pen.start(), *map(self._pen.delta, deltas), self._pen.end()]

    async def _think(self, step: words.ThinkStep) -> Events:
        deltas = split_text(self._filled(step.think), step.chunks)
        start = [*self._open(), self._pen.start(m.BlockKind.THINKING)]
        return [*start, *map(self._pen.delta, deltas), self._pen.end(signature=step.signature)]

    async def _image(self, step: words.ImageStep) -> Events:
        return [*self._open(), *self._pen.image(step.image)]

    async def _data(self, step: words.DataStep) -> Events:
        return [*self._open(), *self._pen.data(step.data.type, step.data.content)]

    async def _annotate(self, step: words.AnnotateStep) -> Events:
        return [*self._open(), *(self._pen.annotate(topic, content) for topic, content in step.annotate.items())]

    async def _call(self, step: words.CallStep) -> Events:
        call = step.call
        said = [*self._open(), *self._pen.call(
            call.name, call.input, call_id=call.id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )]
        self._calls.append(self._pen.calls[-1])
        return said

    async def _result(self, step: words.ResultStep) -> Events:
        """A result that belongs to no call is said all the same: nonsense is what scenarios are for."""
        result = words.ResultFields(content=step.result) if isinstance(step.result, str) else step.result
        call = next((call for call in self._calls if result.of in (None, call.call_id)), None)
        if call is not None:
            self._calls.remove(call)
        self._names["answer"] = self._filled(result.content)
        returned = m.ToolReturned(
            call_id=call.call_id if call else result.of or "", origin=call.origin if call else m.ToolOrigin.BUILTIN,
            content=self._names["answer"], is_error=result.is_error, duration_ms=result.duration_ms, meta=result.meta,
        )
        return [*self._pen.close(stop_reason=m.StopReason.TOOL_USE), self._pen.emit(returned)]

    async def _ask(self, step: words.AskStep) -> Events:
        answers = await self._turn.ask(*step.ask, scope_id=self._pen.scope_id)
        self._names["answer"] = "; ".join(map(answer_as_text, answers))
        return ()

    async def _end(self, step: words.EndMessageStep | words.EndTurnStep) -> Events:
        return ()

    async def _delay(self, step: words.DelayStep) -> Events:
        await self._sleep(step.delay)
        return ()

    async def _hang(self, step: words.HangStep) -> Events:
        await asyncio.Event().wait()
        return ()

    async def _fail(self, step: words.FailStep) -> Events:
        raise ERROR_CLASSES[step.fail.code](step.fail.message)

    async def _raise(self, step: words.RaiseStep) -> Events:
        raise RuntimeError(step.error)

    async def _event(self, step: words.EventStep) -> Events:
        return [self._pen.emit(step.event) if step.scope is None else ScopedEvent(step.scope, step.event)]


_HANDLERS: dict[type[words.ScenarioModel], Callable[[_ScenarioPlayer, Any], Awaitable[Events]]] = {
    words.SayStep: _ScenarioPlayer._say,
    words.ThinkStep: _ScenarioPlayer._think,
    words.ImageStep: _ScenarioPlayer._image,
    words.DataStep: _ScenarioPlayer._data,
    words.AnnotateStep: _ScenarioPlayer._annotate,
    words.EndMessageStep: _ScenarioPlayer._end,
    words.EndTurnStep: _ScenarioPlayer._end,
    words.CallStep: _ScenarioPlayer._call,
    words.ResultStep: _ScenarioPlayer._result,
    words.AskStep: _ScenarioPlayer._ask,
    words.DelayStep: _ScenarioPlayer._delay,
    words.HangStep: _ScenarioPlayer._hang,
    words.FailStep: _ScenarioPlayer._fail,
    words.RaiseStep: _ScenarioPlayer._raise,
    words.EventStep: _ScenarioPlayer._event,
}
_KEEP_CALLS_OPEN = frozenset((
    words.CallStep, words.ResultStep, words.EventStep, words.DelayStep, words.HangStep, words.FailStep, words.RaiseStep,
))
"""Steps that leave open calls as they are; before any other, calls without a result are carried out."""
_END_MESSAGE_BEFORE: dict[type[words.ScenarioModel], Callable[[Any], m.StopReason]] = {
    words.EndMessageStep: lambda step: step.end,
    words.EndTurnStep: lambda step: step.stop,
    words.AskStep: lambda step: m.StopReason.NEEDS_INPUT,
    words.ForkStep: lambda step: m.StopReason.TOOL_USE,
}
"""Steps before which the message ends, and why it does."""


def expand_repeats(steps: Sequence[Any]) -> Iterator[Any]:
    """The steps with what is repeated written out."""
    for step in steps:
        if isinstance(step, words.RepeatStep):
            for _ in range(step.repeat):
                yield from expand_repeats(step.steps)
        else:
            yield step


def split_text(text: str, count: int | None) -> list[str]:
    """The text in so many pieces of about one size, or word by word."""
    if count is None:
        return re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(text) // count))
    return [text[at:at + size] for at in range(0, len(text), size)]


def answer_as_text(answer: m.Answer) -> str:
    """An answer as a scenario may repeat it."""
    match answer:
        case m.AnswerQuestion(selections=selections, custom=custom, message=message):
            chosen = [f"{number}: {', '.join(map(str, picked))}" for number, picked in selections.items()]
            return "; ".join([*chosen, *custom.values(), *([message] if message else [])])
        case m.DecidePermission(granted=granted, reason=reason):
            return "granted" if granted else f"denied: {reason}" if reason else "denied"
        case m.ReturnResult(content=content):
            return m.text_of(content)
        case m.ContinueTurn(proceed=proceed):
            return "proceed" if proceed else "stop"
        case m.RollBack(option=option):
            return option or "no option"
    return "withdrawn"


class ScriptedSettings(ScenarioModel):
    """What config may say about a scripted agent."""

    scenario: Path = Field(description="The scenario file, seen from the folder of the config.")
