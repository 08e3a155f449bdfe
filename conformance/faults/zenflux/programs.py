"""Wrong ZenFlux servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import web

from conformance.faults.steps import AsyncStep, Step
from conformance.faults.zenflux.player import Broken, RunEvent, RunEvents
from conformance.faults.zenflux.script import Use
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.faults.zenflux.state import Body, Conversation, Refusal, Session, event_time
from conformance.faults.zenflux.variations import changed


class _Enough(Broken):
    """Nothing more is said."""


class BinaryFrames:
    """Frames are binary."""

    async def send(self, step: AsyncStep[None], line: Line, frame: Body) -> None:
        await line.socket.send_bytes(orjson.dumps(frame))


@dataclass
class OneConversation:
    """A user has one conversation for all chats that name none."""

    server: ZenfluxServer

    def talk(self, step: Step[Conversation], params: Body) -> Conversation:
        owned = self.server.conversations.owned(params["user_id"])
        return owned[0] if owned and not params.get("conversation_id") else step(params)


class OneChatPerLine:
    """The connection is closed after a run."""

    async def send_run(self, step: AsyncStep[None], line: Line, session: Session) -> None:
        await step(line, session)
        await line.socket.close()


@dataclass
class HeardEverywhere:
    """Events go to every line that is open."""

    server: ZenfluxServer
    lines: list[Line] = field(default_factory=list)

    async def tick(self, step: AsyncStep[None], line: Line) -> None:
        self.lines.append(line)
        await step(line)

    async def deliver(self, step: AsyncStep[None], line: Line, session: Session, event: RunEvent) -> None:
        frame = self.server.writer.event_frame(self.server.writer.envelope(session, event))
        for other in self.lines:
            await self.server.socket.send(other, frame)


class BusyLineForgets:
    """A chat on a busy line is accepted, and its events never come."""

    def start(self, step: Step[None], line: Line, payload: Body) -> None:
        if "started" not in vars(line):
            vars(line)["started"] = True
            step(line, payload)


class ThrottledAway:
    """Deltas that are held are forgotten."""

    async def throttled(self, step: Step[RunEvents], events: RunEvents) -> RunEvents:
        last = ""
        async for event in events:
            if event.type != "content_delta" or last != "content_delta":
                yield event
            last = event.type


class ClosesOnNonsense:
    """A malformed frame closes the connection."""

    async def malformed(self, step: AsyncStep[None], line: Line) -> None:
        await line.socket.close(code=1003)


@dataclass
class StopsAtOnce:
    """A stopped run says session_stopped and nothing else."""

    server: ZenfluxServer

    def stopped(self, step: Step[Iterator[RunEvent]], session: Session) -> Iterator[RunEvent]:
        yield list(step(session))[-1]

    def end(self, step: Step[RunEvent], session: Session, status: str) -> RunEvent:
        return step(session, "completed" if status == "cancelled" else status)

    async def send_run(self, step: AsyncStep[None], line: Line, session: Session) -> None:
        async for event in self.server.writer.throttled(self.server.player.play(session)):
            if event.type != "session_end" or not session.stopping.is_set():
                await self.server.socket.deliver(line, session, event)


@dataclass
class AbortsOnce:
    """Aborting what is over is an error."""

    server: ZenfluxServer

    def chat_abort(self, step: Step[Body], params: Any) -> Body:
        name = params.get("session_id") if isinstance(params, dict) else None
        if self.server.chats.session(name).is_over:
            raise Refusal(409, "SESSION_OVER", "It is over.")
        return step(params)


@dataclass
class AbortsNothing:
    """An abort is ok and does nothing."""

    server: ZenfluxServer

    def chat_abort(self, step: Step[Body], params: Any) -> Body:
        session = self.server.chats.session(params.get("session_id") if isinstance(params, dict) else None)
        return {"session_id": session.id, "status": "stopped", "stopped_at": event_time()}


@dataclass
class StopIsIgnored:
    """A stop is answered and does nothing."""

    server: ZenfluxServer

    async def post_stop(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        session = self.server.streams.found(request)
        about = {"session_id": session.id, "status": "stopped", "stopped_at": event_time()}
        return self.server.front.reply(about)


class MoreWithoutStreaming:
    """A chat that is not streamed comes letter by letter."""

    async def deliver(self, step: AsyncStep[None], line: Line, session: Session, event: RunEvent) -> None:
        if event.type != "content_delta" or session.is_streamed:
            await step(line, session, event)
            return
        for letter in event.data["delta"]:
            await step(line, session, RunEvent(event.type, {"index": event.data["index"], "delta": letter}))


class OneAtATime:
    """Of requests that come close together only the last is answered."""

    async def respond(self, step: AsyncStep[None], line: Line, frame: Body) -> None:
        token = vars(line)["latest"] = uuid4().hex

        async def later() -> None:
            await asyncio.sleep(0.02)
            if vars(line)["latest"] == token:
                await step(line, frame)

        line.spawn(later())


@dataclass
class IdsTwice:
    """Two events in a row share their id."""

    last: str = ""

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        envelope = step(session, event)
        if session.seq % 2 == 0:
            return envelope | {"event_uuid": self.last}
        self.last = envelope["event_uuid"]
        return envelope


@dataclass
class NumberedOnAndOn:
    """Numbers go on from one run of a server to the next."""

    counted: int = 0

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        self.counted += 1
        return step(session, event) | {"seq": self.counted}


class StaleMessageIds:
    """Events of the second message carry the id of the first."""

    def envelope(self, step: Step[Body], session: Session, event: RunEvent) -> Body:
        first = vars(session).setdefault("first_message", session.message_id)
        return step(session, event) | {"message_id": first}


class ThinksAfterwards:
    """A thought comes after the text."""

    async def perform(self, step: Step[RunEvents], session: Session) -> RunEvents:
        held: list[RunEvent] = []
        async for event in step(session):
            kind = event.data.get("content_block", {}).get("type")
            if kind == "thinking" or (held and held[-1].type != "content_stop"):
                held.append(event)
                continue
            if event.type == "message_delta":
                for late in held:
                    yield changed(late, index=1)
                held = [RunEvent("content_stop", {})] if held else []
            yield changed(event, index=0) if "index" in event.data and held else event


@dataclass
class StopsAtTools:
    """After a tool call the run is over."""

    server: ZenfluxServer

    async def use(self, step: Step[RunEvents], session: Session, move: Use) -> RunEvents:
        async for event in step(session, move):
            yield event
            if event.type == "content_stop":
                break
        raise _Enough

    async def perform(self, step: Step[RunEvents], session: Session) -> RunEvents:
        try:
            async for event in step(session):
                yield event
        except _Enough:
            for event in self.server.player.closed(session, "tool_use"):
                yield event


class ResultsLast:
    """The text of the second round comes before the result."""

    async def perform(self, step: Step[RunEvents], session: Session) -> RunEvents:
        held: list[RunEvent] = []
        async for event in step(session):
            kind = event.data.get("content_block", {}).get("type")
            if kind == "tool_result" or (held and held[-1].type != "content_stop"):
                held.append(event)
                continue
            if event.type == "message_delta":
                for late in held:
                    yield changed(late, index=late.data["index"] + 1)
                held = []
            yield changed(event, index=event.data["index"] - 1) if held and "index" in event.data else event


class OverlappingBlocks:
    """A block is closed when the next has begun."""

    async def perform(self, step: Step[RunEvents], session: Session) -> RunEvents:
        held: list[RunEvent] = []
        async for event in step(session):
            if event.type == "content_stop":
                held.append(event)
                continue
            is_next = event.type == "content_start"
            if is_next:
                yield event
            for late in held:
                yield late
            held = []
            if not is_next:
                yield event


class WholeTextsAgain:
    """In a stream each delta repeats what was said before."""

    async def forwarded(self, step: Step[RunEvents], session: Session) -> RunEvents:
        said = ""
        async for event in step(session):
            said = said + event.data["delta"] if event.type == "content_delta" else ""
            yield changed(event, delta=said) if said else event


@dataclass
class ThrottledStreams:
    """Streams are throttled as the socket is."""

    server: ZenfluxServer

    def forwarded(self, step: Step[RunEvents], session: Session) -> RunEvents:
        return self.server.writer.throttled(step(session))


@dataclass
class AllSessions:
    """The list of sessions has those that are over."""

    server: ZenfluxServer

    async def get_sessions(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        sessions = [self.server.streams.info(session) for session in self.server.state.sessions.values()]
        return self.server.front.reply({"total": len(sessions), "sessions": sessions})


@dataclass
class NothingToContinue:
    """confirm_continue with nothing to confirm is an error."""

    server: ZenfluxServer

    async def post_continue(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        if self.server.streams.found(request).waits_for != "continue":
            raise Refusal(409, "NOTHING_PENDING", "Nothing is asked.")
        return await step(request)


@dataclass
class OverIsUnknown:
    """A run that is over cannot be stopped over REST."""

    server: ZenfluxServer

    async def post_stop(self, step: AsyncStep[web.StreamResponse], request: web.Request) -> web.StreamResponse:
        if self.server.streams.found(request).is_over:
            raise Refusal(404, "SESSION_NOT_FOUND", "There is no such session.")
        return await step(request)


class RoundsKeptApart:
    """A call and its result are kept in the messages they were streamed in."""

    def finish(self, step: Step[None], session: Session, status: str) -> None:
        results = [place for place, block in enumerate(session.blocks) if block["type"] == "tool_result"]
        for place in results[:1]:
            session.conversation.add("assistant", session.blocks[:place])
            session.blocks = session.blocks[place:]
        step(session, status)
