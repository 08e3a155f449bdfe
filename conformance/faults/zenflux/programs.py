"""Wrong ZenFlux servers that remember something or take several steps, which rows of faults.yaml cannot say."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import web

from conformance.faults.zenflux.player import Broken, Telling, Told
from conformance.faults.zenflux.script import Use
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line
from conformance.faults.zenflux.state import Body, Conversation, Refusal, Session
from conformance.faults.zenflux.variations import changed


class _Enough(Broken):
    """Nothing more is said."""


class BinaryFrames(ZenfluxServer):
    """Frames are binary."""

    async def send(self, line: Line, frame: Body) -> None:
        await line.socket.send_bytes(orjson.dumps(frame))


class OneConversation(ZenfluxServer):
    """A user has one conversation for all chats that name none."""

    def talk(self, params: Body) -> Conversation:
        owned = self.owned(params["user_id"])
        return owned[0] if owned and not params.get("conversation_id") else super().talk(params)


class OneChatPerLine(ZenfluxServer):
    """The connection is closed after a run."""

    async def tell(self, line: Line, session: Session) -> None:
        await super().tell(line, session)
        await line.socket.close()


class HeardEverywhere(ZenfluxServer):
    """Events go to every line that is open."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []

    async def tick(self, line: Line) -> None:
        self.lines.append(line)
        await super().tick(line)

    async def deliver(self, line: Line, session: Session, told: Told) -> None:
        frame = self.event_frame(self.envelope(session, told))
        for other in self.lines:
            await self.send(other, frame)


class BusyLineForgets(ZenfluxServer):
    """A chat on a busy line is accepted and never told."""

    def start(self, line: Line, payload: Body) -> None:
        if "started" not in vars(line):
            vars(line)["started"] = True
            super().start(line, payload)


class ThrottledAway(ZenfluxServer):
    """Deltas that are held are forgotten."""

    async def throttled(self, telling: Telling) -> Telling:
        last = ""
        async for told in telling:
            if told.type != "content_delta" or last != "content_delta":
                yield told
            last = told.type


class ClosesOnNonsense(ZenfluxServer):
    """A malformed frame closes the connection."""

    async def malformed(self, line: Line) -> None:
        await line.socket.close(code=1003)


class StopsAtOnce(ZenfluxServer):
    """A stopped run says session_stopped and nothing else."""

    def stopped(self, session: Session) -> Iterator[Told]:
        yield list(super().stopped(session))[-1]

    def end(self, session: Session, status: str) -> Told:
        return super().end(session, "completed")

    async def tell(self, line: Line, session: Session) -> None:
        async for told in self.throttled(self.play(session)):
            if told.type != "session_end" or not session.stopping.is_set():
                await self.deliver(line, session, told)


class AbortsOnce(ZenfluxServer):
    """Aborting what is over is an error."""

    def chat_abort(self, params: Any) -> Body:
        if self.session((params or {}).get("session_id")).is_over:
            raise Refusal(409, "SESSION_OVER", "It is over.")
        return super().chat_abort(params)


class MoreWithoutStreaming(ZenfluxServer):
    """A chat that is not streamed comes letter by letter."""

    async def block(self, session: Session, *given: Any) -> Telling:
        async for told in super().block(session, *given):
            if told.type != "content_delta" or session.is_streamed:
                yield told
                continue
            for letter in told.data["delta"]:
                yield Told(told.type, {"index": told.data["index"], "delta": letter})

    def throttled(self, telling: Telling) -> Telling:
        return telling


class OneAtATime(ZenfluxServer):
    """Of requests that come close together only the last is answered."""

    async def respond(self, line: Line, frame: Body) -> None:
        token = vars(line)["latest"] = uuid4().hex

        async def later() -> None:
            await asyncio.sleep(0.02)
            if vars(line)["latest"] == token:
                await super(OneAtATime, self).respond(line, frame)

        line.spawn(later())


class IdsTwice(ZenfluxServer):
    """Two events in a row share their id."""

    last = ""

    def envelope(self, session: Session, told: Told) -> Body:
        envelope = super().envelope(session, told)
        if session.seq % 2 == 0:
            return envelope | {"event_uuid": self.last}
        self.last = envelope["event_uuid"]
        return envelope


class NumberedOnAndOn(ZenfluxServer):
    """Numbers go on from one run of a server to the next."""

    counted = 0

    def envelope(self, session: Session, told: Told) -> Body:
        self.counted += 1
        return super().envelope(session, told) | {"seq": self.counted}


class StaleMessageIds(ZenfluxServer):
    """Events of the second message carry the id of the first."""

    def envelope(self, session: Session, told: Told) -> Body:
        first = vars(session).setdefault("first_message", session.message_id)
        return super().envelope(session, told) | {"message_id": first}


class ThinksAfterwards(ZenfluxServer):
    """A thought comes after the text."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            kind = told.data.get("content_block", {}).get("type")
            if kind == "thinking" or (held and held[-1].type != "content_stop"):
                held.append(told)
                continue
            if told.type == "message_delta":
                for late in held:
                    yield changed(late, index=1)
                held = [Told("content_stop", {})] if held else []
            yield changed(told, index=0) if "index" in told.data and held else told


class StopsAtTools(ZenfluxServer):
    """After a tool call the run is over."""

    async def use(self, session: Session, move: Use) -> Telling:
        async for told in super().use(session, move):
            yield told
            if told.type == "content_stop":
                break
        raise _Enough

    async def perform(self, session: Session) -> Telling:
        try:
            async for told in super().perform(session):
                yield told
        except _Enough:
            for told in self.closed(session, "tool_use"):
                yield told


class ResultsLast(ZenfluxServer):
    """The text of the second round comes before the result."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            kind = told.data.get("content_block", {}).get("type")
            if kind == "tool_result" or (held and held[-1].type != "content_stop"):
                held.append(told)
                continue
            if told.type == "message_delta":
                for late in held:
                    yield late
                held = []
            yield told


class OverlappingBlocks(ZenfluxServer):
    """A block is closed when the next has begun."""

    async def perform(self, session: Session) -> Telling:
        held: list[Told] = []
        async for told in super().perform(session):
            if told.type == "content_stop":
                held.append(told)
                continue
            is_next = told.type == "content_start"
            if is_next:
                yield told
            for late in held:
                yield late
            held = []
            if not is_next:
                yield told


class WholeTextsAgain(ZenfluxServer):
    """In a stream each delta repeats what was said before."""

    async def forwarded(self, session: Session) -> Telling:
        said = ""
        async for told in super().forwarded(session):
            said = said + told.data["delta"] if told.type == "content_delta" else ""
            yield changed(told, delta=said) if said else told


class ThrottledStreams(ZenfluxServer):
    """Streams are throttled as the socket is."""

    def forwarded(self, session: Session) -> Telling:
        return self.throttled(super().forwarded(session))


class AllSessions(ZenfluxServer):
    """The list of sessions has those that are over."""

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        sessions = [self.info(session) for session in self.sessions.values()]
        return self.reply({"total": len(sessions), "sessions": sessions})


class NothingToContinue(ZenfluxServer):
    """confirm_continue with nothing to confirm is an error."""

    async def post_continue(self, request: web.Request) -> web.StreamResponse:
        if self.found(request).waits_for != "continue":
            raise Refusal(409, "NOTHING_PENDING", "Nothing is asked.")
        return await super().post_continue(request)


class OverIsUnknown(ZenfluxServer):
    """A run that is over cannot be stopped over REST."""

    async def post_stop(self, request: web.Request) -> web.StreamResponse:
        if self.found(request).is_over:
            raise Refusal(404, "SESSION_NOT_FOUND", "There is no such session.")
        return await super().post_stop(request)


class RoundsKeptApart(ZenfluxServer):
    """A call and its result are kept in the messages they were streamed in."""

    def finish(self, session: Session, status: str) -> None:
        results = [place for place, block in enumerate(session.blocks) if block["type"] == "tool_result"]
        for place in results[:1]:
            session.conversation.add("assistant", session.blocks[:place])
            session.blocks = session.blocks[place:]
        super().finish(session, status)
