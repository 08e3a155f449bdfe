"""Plays actions as AAP: a stream of deltas, a stream of whole messages, or one body, as the client asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.clients.agent_actions import (
    Action,
    Asked,
    Call,
    Cut,
    End,
    Everything,
    Heartbeat,
    Say,
    Think,
    Unknown,
    Wait,
)
from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import reply
from conformance.clients.situation import SERVER_TOOL
from conformance.clients.sse import EventStream

Event = tuple[str, dict[str, Any]]
UNKNOWN: Event = ("x_examiners", {"what": ["an event", {"that": "AAP does not have"}]})


@dataclass(frozen=True)
class Turn:
    """What is known of a turn when it begins or goes on."""

    mode: str
    agent: dict[str, Any]
    tools: list[Any]
    session: str

    def callable(self, asked: Asked) -> str | None:
        """The name of a tool that can be called for this, as far as the client has provided for it."""
        if asked is Asked.CLIENT:
            named = [tool.get("name") for tool in self.tools if isinstance(tool, dict)]
            return str(named[0]) if named else None
        refs = [ref for ref in self.agent.get("tools") or () if isinstance(ref, dict)]
        trusts = {str(ref.get("name")): ref.get("trust") is True for ref in refs}
        return SERVER_TOOL if trusts.get(SERVER_TOOL) is (asked is Asked.NOTHING) else None


@dataclass
class Pause:
    """How far a turn was played."""

    response: web.StreamResponse
    said: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    rest: Sequence[Action] = ()
    reason: str = "end_turn"
    is_cut: bool = False


class Player:
    """Plays the replies of a situation."""

    def __init__(self, reply_queue: ReplyQueue) -> None:
        self._reply_queue = reply_queue

    async def play(self, request: web.Request, turn: Turn, actions: Sequence[Action], *, waiting: bool) -> Pause:
        """Play up to the end of the turn, to a call that waits for the client, or to a cut."""
        pause = Pause(web.Response())
        if waiting:
            pause.reason, pause.rest, actions = "tool_use", actions, ()
        try:
            if turn.mode == "none":
                await self._in_one_body(turn, actions, pause)
            else:
                await self._streamed(request, turn, actions, pause)
        except (ConnectionResetError, asyncio.CancelledError):
            self._reply_queue.traffic.mark("hung_up")
            raise
        return pause

    # -- one body ------------------------------------------------------------------------------------------------------

    async def _in_one_body(self, turn: Turn, actions: Sequence[Action], pause: Pause) -> None:
        async for _ in self._events(turn, actions, pause):
            pass
        said = [{"role": "assistant", "content": pause.said}] if pause.said else []
        body = {"stopReason": pause.reason, "messages": [*said, *pause.results]} | self._reply_queue.members
        if pause.is_cut:
            self._note_cut(turn, pause)
        elif not pause.pending:
            self._reply_queue.traffic.mark("ended")
        pause.response = reply(body)

    # -- streams -------------------------------------------------------------------------------------------------------

    async def _streamed(self, request: web.Request, turn: Turn, actions: Sequence[Action], pause: Pause) -> None:
        traffic = self._reply_queue.traffic
        stream = EventStream(request, traffic, is_odd=bool(self._reply_queue.option("odd")))
        pause.response = stream.response
        await asyncio.sleep(_first_wait(actions))
        await stream.open()
        await stream.send("turn_start", self._reply_queue.members)
        async for event in self._events(turn, actions[1:] if _first_wait(actions) else actions, pause):
            if event is None:
                await stream.comment()
            else:
                await stream.send(event[0], event[1] | self._reply_queue.members)
        if pause.is_cut:
            await self._cut(stream, pause)
            self._note_cut(turn, pause)
            return
        if not pause.pending:
            traffic.mark("ended")
        await stream.send("turn_stop", {"stopReason": pause.reason} | self._reply_queue.members)

    async def _cut(self, stream: EventStream, pause: Pause) -> None:
        action = pause.rest[0]
        assert isinstance(action, Cut), "a cut is played at a cut"
        await (stream.cut("text_delta", {"delta": "lost words"}) if action.is_within else stream.cut())

    def _note_cut(self, turn: Turn, pause: Pause) -> None:
        """What comes after a cut happens without the client: only the history tells of it."""
        for action in pause.rest:
            if isinstance(action, Say):
                pause.said.append({"type": "text", "text": action.text})
        pause.rest = ()
        self._reply_queue.traffic.note_cut()
        self._reply_queue.traffic.mark("ended")

    # -- what happens --------------------------------------------------------------------------------------------------

    async def _events(self, turn: Turn, actions: Sequence[Action], pause: Pause) -> AsyncIterator[Event | None]:
        """The events of the actions; None is a heartbeat."""
        for place, action in enumerate(actions):
            match action:
                case Say() | Think():
                    kind = "text" if isinstance(action, Say) else "thinking"
                    pause.said.append({"type": kind, kind: action.text})
                    for event in _words(turn.mode, kind, action.pieces):
                        yield event
                case Unknown():
                    yield UNKNOWN
                case Heartbeat():
                    yield None
                case Wait(seconds):
                    await asyncio.sleep(seconds)
                case Everything() | Call():
                    asked = action.asked if isinstance(action, Call) else (Asked.NOTHING,)
                    for event in self._calls(turn, asked, pause):
                        yield event
                    if pause.pending:
                        pause.rest, pause.reason = actions[place + 1 :], "tool_use"
                        return
                case Cut():
                    pause.rest, pause.is_cut = actions[place:], True
                    return
                case End(reason):
                    pause.reason = reason or "end_turn"

    def _calls(self, turn: Turn, asked: Sequence[Asked], pause: Pause) -> Iterator[Event]:
        for kind in asked:
            name = turn.callable(kind)
            if name is None:
                continue
            if kind is Asked.NOTHING:
                yield from self._server_tool(pause, turn.session)
                continue
            call: dict[str, Any] = {"toolCallId": f"call-{uuid4().hex}", "name": name, "input": {"word": "dragoman"}}
            pause.pending[call["toolCallId"]] = call
            pause.said.append({"type": "tool_use", **call})
            self._reply_queue.traffic.note_ask(call["toolCallId"], kind, turn.session)
            yield "tool_call", call

    def _server_tool(self, pause: Pause, session: str) -> Iterator[Event]:
        """A tool that the server runs by itself."""
        given = {"expression": "19 + 23"}
        call: dict[str, Any] = {"toolCallId": f"call-{uuid4().hex}", "name": SERVER_TOOL, "input": given}
        result = {"toolCallId": call["toolCallId"], "content": "42"}
        pause.said.append({"type": "tool_use", **call})
        pause.results.append({"role": "tool", **result})
        self._reply_queue.traffic.note_ask(call["toolCallId"], Asked.NOTHING, session)
        yield "tool_call", call
        yield "tool_result", result


def _words(mode: str, kind: str, pieces: Sequence[str]) -> Iterator[Event]:
    if mode == "delta":
        yield from ((f"{kind}_delta", {"delta": piece}) for piece in pieces)
    else:
        yield kind, {kind: "".join(pieces)}


def _first_wait(actions: Sequence[Action]) -> float:
    """How long a stream does not even begin."""
    return actions[0].seconds if actions and isinstance(actions[0], Wait) else 0.0
