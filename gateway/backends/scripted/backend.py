"""An agent that plays a scenario: to test clients, and to test how the gateway handles invalid events."""

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
from .scenario_schema import ScenarioModel, Step

Events = Iterable[BackendEvent]
ERROR_CLASSES: dict[m.FaultCode, type[GatewayError]] = {
    m.FaultCode.INTERNAL: GatewayError,
    **{error.code: error for error in vars(errors).values()
       if isinstance(error, type) and issubclass(error, GatewayError) and GatewayError in error.__bases__},
}
"""The error class of each fault code."""


class ScriptedBackend:
    """Plays the steps of a scenario in each turn."""

    def __init__(self, scenario: Scenario, *, clock: Clock = time.time, sleep: Sleep = asyncio.sleep) -> None:
        self._scenario, self._sleep, self._tools = scenario, sleep, builtin_tools(clock)

    def run(self, turn: Turn) -> BackendEvents:
        if isinstance(turn.command, m.Compact):
            return _compact(turn)
        message = m.text_of(turn.command.content)
        number = sum(entry.role is m.Role.USER for entry in turn.history) or 1
        steps = self._scenario.steps(message, number)
        if steps is None:
            raise errors.BackendFailed(f"the scenario has no rule for {message!r}")
        return _ScenarioPlayer(turn, EventWriter(turn), self._tools, self._sleep, message).play(steps)

    async def close(self) -> None:
        pass


async def _compact(turn: Turn) -> BackendEvents:
    yield compaction(turn)


class _ScenarioPlayer:
    """Plays the steps of one scope. A step starts a message if it needs one, and ends it if it must not be open."""

    def __init__(self, turn: Turn, writer: EventWriter, tools: Mapping[str, Tool], sleep: Sleep, message: str) -> None:
        self._turn, self._writer, self._tools, self._sleep = turn, writer, tools, sleep
        self._calls: list[m.ToolCall] = []
        self._names = {"message": message, "answer": ""}
        self.last_words = ""
        self.stop_reason = m.StopReason.END_TURN

    async def play(self, steps: Sequence[Step]) -> BackendEvents:
        """Play the steps, and execute the calls that they leave open."""
        for step in (*expand_repeats(steps), words.EndTurnStep(stop=m.StopReason.END_TURN)):
            if self._calls and type(step) not in _KEEP_CALLS_OPEN:
                for event in self._writer.close(stop_reason=m.StopReason.TOOL_USE):
                    yield event
                calls, self._calls = self._calls, []
                executor = ToolExecutor(self._turn, self._writer, self._tools)
                async with aclosing(executor.run(calls)) as executed:
                    async for event in executed:
                        yield event
                self._names["answer"] = "; ".join(m.text_of(result.content) for result in executor.results.values())
            if (ends := _END_MESSAGE_BEFORE.get(type(step))) is not None:
                for event in self._writer.close(stop_reason=ends(step)):
                    yield event
            if isinstance(step, words.ForkStep):
                child, opened = self._open_scope(step)
                for event in opened:
                    yield event
                async with aclosing(child.play(step.steps)) as played:
                    async for event in played:
                        yield event
                for event in self._close_scope(child):
                    yield event
                continue
            for event in await _HANDLERS[type(step)](self, step):
                yield event
            if isinstance(step, words.EndTurnStep):
                self.stop_reason = step.stop
                return

    def _open_scope(self, step: words.ForkStep) -> "tuple[_ScenarioPlayer, list[BackendEvent]]":
        """A player for a sub-agent, and the events that open its scope."""
        writer, message = EventWriter(self._turn, self._turn.mint("scope")), self._names["message"]
        opened = m.ScopeOpened(parent=self._writer.scope_id, agent=step.fork, title=step.fork)
        task = m.ScopeMessage(sender=self._writer.scope_id, recipient=writer.scope_id, content=message)
        child = _ScenarioPlayer(self._turn, writer, self._tools, self._sleep, message)
        return child, [writer.emit(opened), self._writer.emit(task)]

    def _close_scope(self, child: "_ScenarioPlayer") -> list[BackendEvent]:
        writer = child._writer
        report = m.ScopeMessage(sender=writer.scope_id, recipient=self._writer.scope_id, content=child.last_words)
        ended = m.ScopeStatusChanged(status=m.ScopeStatus.ENDED, stop_reason=child.stop_reason)
        return [writer.emit(report), writer.emit(ended)]

    # -- one method per step --------------------------------------------------------------------------------------

    def _open(self) -> list[BackendEvent]:
        return [] if self._writer.in_message else [self._writer.start_message(model="scripted")]

    def _filled(self, text: str) -> str:
        """The text with the values of `{message}` and `{answer}`."""
        return re.sub(r"\{(message|answer)\}", lambda match: self._names[match[1]], text)

    async def _say(self, step: words.SayStep) -> Events:
        self.last_words = self._filled(step.say)
        deltas = split_text(self.last_words, step.chunks)
        return [*self._open(), self._writer.start(), *map(self._writer.delta, deltas), self._writer.end()]

    async def _think(self, step: words.ThinkStep) -> Events:
        deltas = split_text(self._filled(step.think), step.chunks)
        start = [*self._open(), self._writer.start(m.BlockKind.THINKING)]
        return [*start, *map(self._writer.delta, deltas), self._writer.end(signature=step.signature)]

    async def _image(self, step: words.ImageStep) -> Events:
        return [*self._open(), *self._writer.image(step.image)]

    async def _data(self, step: words.DataStep) -> Events:
        return [*self._open(), *self._writer.data(step.data.type, step.data.content)]

    async def _annotate(self, step: words.AnnotateStep) -> Events:
        return [*self._open(), *(self._writer.annotate(topic, content) for topic, content in step.annotate.items())]

    async def _call(self, step: words.CallStep) -> Events:
        call = step.call
        events = [*self._open(), *self._writer.call(
            call.name, call.input, call_id=call.id, origin=call.origin, permission=call.permission,
            display_name=call.display_name, server=call.server,
        )]
        self._calls.append(self._writer.calls[-1])
        return events

    async def _result(self, step: words.ResultStep) -> Events:
        """A result without a call is emitted, too: scenarios may be invalid on purpose."""
        result = words.ResultFields(content=step.result) if isinstance(step.result, str) else step.result
        call = next((call for call in self._calls if result.of in (None, call.call_id)), None)
        if call is not None:
            self._calls.remove(call)
        self._names["answer"] = self._filled(result.content)
        returned = m.ToolReturned(
            call_id=call.call_id if call else result.of or "", origin=call.origin if call else m.ToolOrigin.BUILTIN,
            content=self._names["answer"], is_error=result.is_error, duration_ms=result.duration_ms, meta=result.meta,
        )
        return [*self._writer.close(stop_reason=m.StopReason.TOOL_USE), self._writer.emit(returned)]

    async def _ask(self, step: words.AskStep) -> Events:
        answers = await self._turn.ask(*step.ask, scope_id=self._writer.scope_id)
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
        return [self._writer.emit(step.event) if step.scope is None else ScopedEvent(step.scope, step.event)]


_HANDLERS: dict[type[Step], Callable[[_ScenarioPlayer, Any], Awaitable[Events]]] = {
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
"""Steps before which open calls stay open; before any other step, they are executed."""
_END_MESSAGE_BEFORE: dict[type[Step], Callable[[Any], m.StopReason]] = {
    words.EndMessageStep: lambda step: step.end,
    words.EndTurnStep: lambda step: step.stop,
    words.AskStep: lambda step: m.StopReason.NEEDS_INPUT,
    words.ForkStep: lambda step: m.StopReason.TOOL_USE,
}
"""Steps before which the message ends, and its stop reason."""


def expand_repeats(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps, with repeated steps written out."""
    for step in steps:
        if isinstance(step, words.RepeatStep):
            for _ in range(step.repeat):
                yield from expand_repeats(step.steps)
        else:
            yield step


def split_text(text: str, count: int | None) -> list[str]:
    """The text in so many pieces of about the same size, or word by word."""
    if count is None:
        return re.findall(r"\S+\s*|\s+", text)
    size = max(1, -(-len(text) // count))
    return [text[at:at + size] for at in range(0, len(text), size)]


def answer_as_text(answer: m.Answer) -> str:
    """An answer as text for `{answer}`."""
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
    """The settings of a scripted agent in config.yaml."""

    scenario: Path = Field(description="The scenario file, relative to the folder of the config.")
