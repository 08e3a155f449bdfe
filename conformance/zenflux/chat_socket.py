"""A chat socket: one WebSocket whose frames are sorted into responses, runs and pongs, within time limits.

What is wrong with a frame is noted for the requirement that the frame, or its member, belongs to; the line reads on.
"""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.websocket import Socket
from conformance.zenflux.run import Run
from conformance.zenflux.run_contents import Event

if TYPE_CHECKING:
    from conformance.zenflux.examination import ZenfluxExamination

Frame = dict[str, Any]
OUTSIDE_RUNS = ("tick", "notification")
ENDPOINT = "/api/v1/ws/chat"
TAKEN, ANSWERED, REFUSED, EVENT_FRAME, TICK, PONG = (
    "ZF-WS-03", "ZF-WS-14", "ZF-WS-15", "ZF-WS-16", "ZF-WS-17", "ZF-WS-21",
)  # fmt: skip
"""Whose a request is that has no answer, and each kind of frame."""


class ChatSocket:
    """One open connection."""

    def __init__(self, exam: "ZenfluxExamination", socket: Socket) -> None:
        self._exam = exam
        self.socket = socket
        self.departures = exam.departures
        self.ticks: list[Frame] = []
        self.order: list[str] = []
        self.closing = "ZF-WS-22"
        """Whose it is that the line stays open."""
        self._responses: dict[str, Frame] = {}
        self._open: list[str] = []
        self._answered_ids: set[str] = set()
        self._waiting: list[Event] = []
        self._claimed: set[str] = set()
        self._quiet_since = asyncio.get_running_loop().time()

    async def read(self, within: float | None = None) -> Frame:
        """The next frame that can be read; responses and events are also kept for whoever waits for them."""
        while True:
            said = await self.socket.next_frame(within, since=None if within else self._quiet_since)
            closed = f"closed with {self.socket.close_code}"
            expect.that(said is not None, f"{ENDPOINT} to stay open", closed, self.closing)
            frame = self._readable(said)
            if frame is not None:
                return self._sorted(frame)

    def _readable(self, said: str | bytes | None) -> Frame | None:
        """The object in a frame; None if it is none, or of a type that nobody knows."""
        if isinstance(said, bytes):
            self.departures.note("ZF-WS-02", f"a text frame on {ENDPOINT}", f"BINARY: {said!r}")
        with expect.owned("ZF-WS-02"):
            frame = expect.parsed(said or "", f"a frame of {ENDPOINT}")
        is_known = isinstance(frame, dict) and frame.get("type") in ("res", "event", "pong")
        is_lost = not is_known and isinstance(frame, dict) and "payload" in frame
        with self.departures.noting(whose_frame(frame), is_misleading=is_lost):
            self._exam.schemas.fit("frame", frame, f"a frame of {ENDPOINT}")
        return frame if is_known else None

    def _sorted(self, frame: Frame) -> Frame:
        if frame.get("event") not in OUTSIDE_RUNS:  # ticks do not prolong a wait
            now = asyncio.get_running_loop().time()
            self._exam.http.waits.went_on(now - self._quiet_since)
            self._quiet_since = now
        if frame.get("event") != "notification":
            self.order.append(str(frame.get("event") or frame["type"]))
        match frame:
            case {"type": "res"}:
                self._answered(frame)
            case {"type": "event", "event": "tick"}:
                with self.departures.noting(TICK):
                    self._exam.schemas.fit("tick", frame, "a tick")
                self.ticks.append(frame)
            case {"type": "event", "event": "notification"}:
                pass
            case {"type": "event"}:
                event = self._exam.event(frame.get("payload"), frame)
                self._waiting += [event] if event is not None else []
        return dict(frame)

    def _answered(self, frame: Frame) -> None:
        """Keep a response; one whose id nobody has given answers the request that has waited longest.

        A second response to the same request is noted, and nobody waits for it.
        """
        name = frame.get("id")
        if name not in self._open and str(name) in self._answered_ids:
            self.departures.note(ANSWERED, f"one response to the request {name}", frame)
            return
        if self._open and name not in self._open and str(name) not in self._answered_ids:
            self.departures.note(ANSWERED, f"a response with the id of its request, {self._open[0]}", frame)
            name = self._open[0]
        if name in self._open:
            self._open.remove(name)
        self._responses[str(name)] = frame
        self._answered_ids.add(str(name))

    @property
    def heard(self) -> list[str]:
        """The kinds of the frames read so far, ticks left out."""
        return [name for name in self.order if name != "tick"]

    # -- requests ------------------------------------------------------------------------------------------------------

    async def send(self, frame: Frame) -> None:
        """Send any frame; if it has an id, a response to it is expected."""
        self._open += [frame["id"]] if "id" in frame else []
        with expect.owned(self.closing):
            await self.socket.send(frame)

    async def request(self, method: str, params: Any) -> str:
        """Send a request frame; its id."""
        name = str(uuid4())
        await self.send({"type": "req", "id": name, "method": method, "params": params})
        return name

    async def response(self, name: str, owner: str = TAKEN) -> Frame:
        """The response to the request of this id."""
        self._quiet_since = asyncio.get_running_loop().time()
        with expect.owned(owner), self._exam.http.waits.goal("a response"):
            while name not in self._responses:
                await self.read()
        return self._responses.pop(name)

    async def any_response(self) -> Frame:
        """The next response, whatever its id."""
        self._quiet_since = asyncio.get_running_loop().time()
        with self._exam.http.waits.goal("a response"):
            while not self._responses:
                await self.read()
        return self._responses.pop(next(iter(self._responses)))

    async def ask(self, method: str, params: Any, owner: str = TAKEN) -> Frame:
        return await self.response(await self.request(method, params), owner)

    async def accepted(self, method: str, params: Any, owner: str = TAKEN) -> Frame:
        """The response to a request that must be taken; the owner is whose it is that it is taken."""
        response = await self.ask(method, params)
        if response.get("ok") is not True:
            self._doubt_the_agent(response)
            expect.fail(f"{method} to be answered with ok", response, owner)
        return response

    def _doubt_the_agent(self, response: Frame) -> None:
        """A profile may name an agent that the server does not have: then nothing can be examined."""
        agent = self._exam.profile.agent
        if agent is not None and "agent" in expect.show(response.get("error")).lower():
            raise NotTestable(f"the server does not know the agent {agent!r} of the profile: {expect.show(response)}")

    async def refused(self, method: str, params: Any, why: str, owner: str | None = None) -> Any:
        """The error of a response that must not be ok; the owner is whose it is that it is not."""
        response = await self.ask(method, params, REFUSED)
        what = f"{method} to be answered with ok false, because {why}"
        expect.that(response.get("ok") is not True, what, response, owner)
        return response.get("error")

    async def ping(self) -> Frame:
        """Ask whether the line is alive; all that was sent before the pong has been read then."""
        self._quiet_since = asyncio.get_running_loop().time()
        await self.send({"type": "ping"})
        with expect.owned(PONG), self._exam.http.waits.goal("a pong"):
            while (frame := await self.read())["type"] != "pong":
                pass
        return frame

    # -- runs ----------------------------------------------------------------------------------------------------------

    def params(self, message: str, **more: Any) -> dict[str, Any]:
        return self._exam.identity | {"message": message} | more

    async def chat(self, message: str, owner: str = TAKEN, **more: Any) -> Run:
        """Send a chat message, which must be accepted; the run has yet to be read."""
        response = await self.accepted("chat.send", self.params(message, **more), owner)
        payload = response.get("payload")
        told = payload.get("session_id") if isinstance(payload, dict) else None
        return self.run(f"chat.send {message!r}", message, told if isinstance(told, str) else None)

    def run(self, asked: str, message: str = "", session: str | None = None) -> Run:
        """The run of this session, or else the next run of this line that nobody reads yet."""
        run = Run(asked, self._next_of, waits=self._exam.http.waits, departures=self.departures)
        run.user, run.message, run.session = self._exam.user, message, session
        run.silence = "ZF-WS-22" if self._claimed else "ZF-SEQ-01"
        if session is not None:
            self._claimed.add(session)
        return run

    async def tell(self, situation: str, owner: str = TAKEN, **more: Any) -> Run:
        """A run of the profile's prompt for this situation."""
        return await self.chat(self._exam.profile.prompt(situation), owner, **more)

    async def _next_of(self, run: Run) -> Event:
        """The next event of this run: of the session it was promised, or the first that no other run has claimed."""
        self._quiet_since = asyncio.get_running_loop().time()
        while (event := self._taken(run)) is None:
            try:
                await self.read()
            except Failed:
                if run.events or run.session is None or not self._waiting:
                    raise
                run.session = None  # the response named another session than the events do
        return event

    def _taken(self, run: Run) -> Event | None:
        """The first event of the run that waits, if any; one without a session belongs to whoever reads."""
        for place, event in enumerate(self._waiting):
            if run.session is None and event.session is not None and event.session not in self._claimed:
                run.session = event.session
                self._claimed.add(run.session)
            if event.session in (None, run.session):
                return self._waiting.pop(place)
        return None

    async def caught(self, run: Run, is_elsewhere: bool = False) -> None:
        """A run that had come to its end before something was done to it cannot be judged by what was done.

        What was done elsewhere than on this line may have been overtaken by frames that are still to be read.
        """
        with suppress(Failed):
            if is_elsewhere:
                await self.ping()
        ends = [event.data for event in self._waiting if (event.session, event.type) == (run.session, "session_end")]
        if any(data.get("status") == "completed" for data in ends):
            raise NotTestable(expect.TOO_QUICK)

    async def settle(self, run: Run) -> Run:
        """Read what else has been sent of the run by now; the line may be closed, and a pong may not come."""
        with self.departures.noting(PONG):
            await self.ping()
        while any(event.session == run.session for event in self._waiting):
            await run.next()
        return run

    async def watch_the_end(self, run: Run) -> Run:
        """See what follows the end of a run: nothing of it, and nothing of others, may come on this line."""
        with self.departures.noting(PONG):
            await self.ping()
        run.late = [event.type for event in self._waiting if event.session == run.session]
        strangers = [event.type for event in self._waiting if event.session not in (None, *self._claimed)]
        if strangers:
            self.departures.note("ZF-WS-22", "no events of other runs on a line", strangers)
        return run

    async def expect_silence(self, owner: str) -> None:
        """Expect no events by the time a ping is answered: the owner demands it, unless they are somebody else's."""
        await self.ping()
        users = {event.data.get("user_id") for event in self._waiting if event.type == "session_start"}
        is_own = self._exam.user in users
        expect.that(not self._waiting, "no events on the line", self.unread, owner if is_own else "ZF-WS-22")

    @property
    def unread(self) -> list[str]:
        """The types of the events that no run has read."""
        return [event.type for event in self._waiting]


def whose_frame(frame: Any) -> str:
    """The requirement that the form of a frame belongs to."""
    match frame:
        case {"type": "res", "ok": False}:
            return REFUSED
        case {"type": "res"}:
            return ANSWERED
        case {"type": "event", "event": "tick"}:
            return TICK
        case {"type": "event"}:
            return EVENT_FRAME
        case {"type": "pong"}:
            return PONG
    return "ZF-WS-02"
