"""Servers that do not keep the line as they should: ticks, pongs, throttling, busy lines and aborts."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from conformance.faults.fault import fault
from conformance.faults.zenflux.memory import Body, Refusal, Session
from conformance.faults.zenflux.player import Telling, Told
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.faults.zenflux.socket import Line

TICKS = "connection.ticks_come"
PING = "connection.a_ping_is_answered"
MANY = "connection.a_line_serves_many_chats"
BUSY = "connection.a_busy_line_stays_in_order"
CLOSES = "responses.an_abort_closes_what_is_open"
AGAIN = "responses.an_abort_can_be_repeated"
STOPS = "sessions.a_stop_is_told_as_an_abort_is"


@fault("ZF-WS-17", "ZF-WS-18", cases=TICKS)
class NoTicks(ZenfluxServer):
    """No ticks come."""

    async def tick(self, line: Line) -> None:
        pass


@fault("ZF-WS-18", cases=TICKS)
class HastyTicks(ZenfluxServer):
    """Ticks come much too often."""

    tick_every = 0.05


@fault("ZF-WS-17", cases=TICKS)
class TicksInSeconds(ZenfluxServer):
    """A tick says the time in seconds."""

    def tick_frame(self) -> Body:
        frame = super().tick_frame()
        return frame | {"payload": {"ts": frame["payload"]["ts"] // 1000}}


@fault("ZF-WS-17", cases=TICKS)
class NumberedTicks(ZenfluxServer):
    """Ticks are numbered as events are."""

    def tick_frame(self) -> Body:
        return super().tick_frame() | {"seq": 4}


@fault("ZF-WS-21", cases=PING)
class NoPong(ZenfluxServer):
    """A ping is ignored."""

    async def send(self, line: Line, frame: Body) -> None:
        if frame["type"] != "pong":
            await super().send(line, frame)


@fault("ZF-WS-21", cases=PING)
class PongWithoutTime(ZenfluxServer):
    """A pong does not say the time."""

    def pong(self) -> Body:
        return {"type": "pong"}


@fault("ZF-WS-22", cases=f"{MANY} {BUSY}")
class OneChatPerLine(ZenfluxServer):
    """The connection is closed after a run."""

    async def tell(self, line: Line, session: Session) -> None:
        await super().tell(line, session)
        await line.socket.close()


@fault("ZF-WS-22", cases="connection.lines_do_not_disturb_each_other")
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


@fault("ZF-WS-22", cases=BUSY)
class BusyLineForgets(ZenfluxServer):
    """A chat on a busy line is accepted and never told."""

    def start(self, line: Line, payload: Body) -> None:
        if "started" not in vars(line):
            vars(line)["started"] = True
            super().start(line, payload)


@fault("ZF-WS-24", cases="connection.deltas_are_throttled")
class NotThrottled(ZenfluxServer):
    """Every delta is a frame."""

    def throttled(self, telling: Telling) -> Telling:
        return telling


@fault("G-ZF-16", cases="connection.throttling_loses_nothing")
class ThrottledAway(ZenfluxServer):
    """Deltas that are held are forgotten."""

    async def throttled(self, telling: Telling) -> Telling:
        last = ""
        async for told in telling:
            if told.type != "content_delta" or last != "content_delta":
                yield told
            last = told.type


@fault("G-ZF-10", cases="connection.malformed_frames_are_survived")
class ClosesOnNonsense(ZenfluxServer):
    """A malformed frame closes the connection."""

    async def malformed(self, line: Line) -> None:
        await line.socket.close(code=1003)


@fault("G-ZF-10", cases="connection.requests_without_id_or_method_are_answered")
class SilentWithoutId(ZenfluxServer):
    """A request without an id is not answered."""

    async def respond(self, line: Line, frame: Body) -> None:
        if frame.get("id"):
            await super().respond(line, frame)


@fault("G-ZF-12", cases="connection.a_second_chat_takes_the_place_of_the_first")
class BothGoOn(ZenfluxServer):
    """A second chat leaves the first as it is."""

    def leave(self, line: Line) -> None:
        pass


@fault("G-ZF-11", cases=f"{CLOSES} {AGAIN} {STOPS}")
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


@fault("G-ZF-11", cases=AGAIN)
class AbortsOnce(ZenfluxServer):
    """Aborting what is over is an error."""

    def chat_abort(self, params: Any) -> Body:
        if self.session((params or {}).get("session_id")).is_over:
            raise Refusal(409, "SESSION_OVER", "It is over.")
        return super().chat_abort(params)


@fault("G-ZF-11", cases=CLOSES)
class LeftOpen(ZenfluxServer):
    """A stopped run leaves its block open."""

    def stopped(self, session: Session) -> Iterator[Told]:
        session.open_block = None
        yield from super().stopped(session)


@fault("G-ZF-11", cases=CLOSES)
class AbortedInPeace(ZenfluxServer):
    """The message of an aborted run stops with end_turn."""

    def stopped(self, session: Session) -> Iterator[Told]:
        block, *rest = super().stopped(session)
        yield from (block, self.note("usage", {"stop_reason": "end_turn"}), *rest)


@fault("G-ZF-18", cases="responses.without_streaming_a_block_is_one_delta")
class StreamsAnyway(ZenfluxServer):
    """stream false changes nothing."""

    def begin(self, params: Body, has_rounds: bool) -> Session:
        return super().begin(params | ({"stream": True} if has_rounds else {}), has_rounds)


@fault("ZF-WS-09", cases="frames.streaming_can_be_chosen")
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


@fault("ZF-WS-03", cases="frames.a_response_has_the_id_of_its_request")
class OneAtATime(ZenfluxServer):
    """Of requests that come close together only the last is answered."""

    async def respond(self, line: Line, frame: Body) -> None:
        token = vars(line)["latest"] = uuid4().hex

        async def later() -> None:
            await asyncio.sleep(0.02)
            if vars(line)["latest"] == token:
                await super(OneAtATime, self).respond(line, frame)

        line.spawn(later())
