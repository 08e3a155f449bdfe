"""Plays moves as AAP: a stream of deltas, a stream of whole messages, or one body, as the client has asked."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from aiohttp import web

from conformance.clients.moves import (
    Asked,
    Call,
    Cut,
    End,
    Everything,
    Heartbeat,
    Move,
    Say,
    Think,
    Unknown,
    Wait,
)
from conformance.clients.recorder import reply
from conformance.clients.score import Score
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
    rest: Sequence[Move] = ()
    reason: str = "end_turn"
    is_cut: bool = False


class Player:
    """Plays the replies of a score."""

    def __init__(self, score: Score) -> None:
        self._score = score

    async def play(self, request: web.Request, turn: Turn, moves: Sequence[Move], *, waiting: bool) -> Pause:
        """Play up to the end of the turn, to a call that waits for the client, or to a cut."""
        pause = Pause(web.Response())
        if waiting:
            pause.reason, pause.rest, moves = "tool_use", moves, ()
        try:
            if turn.mode == "none":
                await self._in_one_body(turn, moves, pause)
            else:
                await self._streamed(request, turn, moves, pause)
        except (ConnectionResetError, asyncio.CancelledError):
            self._score.tape.mark("hung_up")
            raise
        return pause

    # -- one body ------------------------------------------------------------------------------------------------------

    async def _in_one_body(self, turn: Turn, moves: Sequence[Move], pause: Pause) -> None:
        async for _ in self._events(turn, moves, pause):
            pass
        said = [{"role": "assistant", "content": pause.said}] if pause.said else []
        body = {"stopReason": pause.reason, "messages": [*said, *pause.results]} | self._score.members
        if pause.is_cut:
            self._note_cut(turn, pause)
        elif not pause.pending:
            self._score.tape.mark("ended")
        pause.response = reply(body)

    # -- streams -------------------------------------------------------------------------------------------------------

    async def _streamed(self, request: web.Request, turn: Turn, moves: Sequence[Move], pause: Pause) -> None:
        tape = self._score.tape
        stream = EventStream(request, tape, is_odd=bool(self._score.option("odd")))
        pause.response = stream.response
        await asyncio.sleep(_first_wait(moves))
        await stream.open()
        await stream.send("turn_start", self._score.members)
        async for event in self._events(turn, moves[1:] if _first_wait(moves) else moves, pause):
            if event is None:
                await stream.comment()
            else:
                await stream.send(event[0], event[1] | self._score.members)
        if pause.is_cut:
            await self._cut(stream, pause)
            self._note_cut(turn, pause)
            return
        if not pause.pending:
            tape.mark("ended")
        await stream.send("turn_stop", {"stopReason": pause.reason} | self._score.members)

    async def _cut(self, stream: EventStream, pause: Pause) -> None:
        move = pause.rest[0]
        assert isinstance(move, Cut), "a cut is played at a cut"
        await (stream.cut("text_delta", {"delta": "lost words"}) if move.is_within else stream.cut())

    def _note_cut(self, turn: Turn, pause: Pause) -> None:
        """What comes after a cut happens without the client: only the history tells of it."""
        for move in pause.rest:
            if isinstance(move, Say):
                pause.said.append({"type": "text", "text": move.text})
        pause.rest = ()
        self._score.tape.note_cut()
        self._score.tape.mark("ended")

    # -- what happens --------------------------------------------------------------------------------------------------

    async def _events(self, turn: Turn, moves: Sequence[Move], pause: Pause) -> AsyncIterator[Event | None]:
        """The events of the moves; None is a heartbeat."""
        for place, move in enumerate(moves):
            match move:
                case Say() | Think():
                    kind = "text" if isinstance(move, Say) else "thinking"
                    pause.said.append({"type": kind, kind: move.text})
                    for event in _words(turn.mode, kind, move.pieces):
                        yield event
                case Unknown():
                    yield UNKNOWN
                case Heartbeat():
                    yield None
                case Wait(seconds):
                    await asyncio.sleep(seconds)
                case Everything() | Call():
                    asked = move.asked if isinstance(move, Call) else (Asked.NOTHING,)
                    for event in self._calls(turn, asked, pause):
                        yield event
                    if pause.pending:
                        pause.rest, pause.reason = moves[place + 1 :], "tool_use"
                        return
                case Cut():
                    pause.rest, pause.is_cut = moves[place:], True
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
            self._score.tape.note_ask(call["toolCallId"], kind, turn.session)
            yield "tool_call", call

    def _server_tool(self, pause: Pause, session: str) -> Iterator[Event]:
        """A tool that the server runs by itself."""
        given = {"expression": "19 + 23"}
        call: dict[str, Any] = {"toolCallId": f"call-{uuid4().hex}", "name": SERVER_TOOL, "input": given}
        result = {"toolCallId": call["toolCallId"], "content": "42"}
        pause.said.append({"type": "tool_use", **call})
        pause.results.append({"role": "tool", **result})
        self._score.tape.note_ask(call["toolCallId"], Asked.NOTHING, session)
        yield "tool_call", call
        yield "tool_result", result


def _words(mode: str, kind: str, pieces: Sequence[str]) -> Iterator[Event]:
    if mode == "delta":
        yield from ((f"{kind}_delta", {"delta": piece}) for piece in pieces)
    else:
        yield kind, {kind: "".join(pieces)}


def _first_wait(moves: Sequence[Move]) -> float:
    """How long a stream does not even begin."""
    return moves[0].seconds if moves and isinstance(moves[0], Wait) else 0.0
