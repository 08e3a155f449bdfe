"""A line to the server: one WebSocket whose frames are checked and sorted into responses, runs and pongs."""

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


class Line:
    """One open connection."""

    def __init__(self, exam: "ZenfluxExamination", socket: Socket) -> None:
        self._exam = exam
        self.socket = socket
        self.ticks: list[Frame] = []
        self.order: list[str] = []
        self._responses: dict[str, Frame] = {}
        self._waiting: list[Event] = []
        self._claimed: set[str] = set()
        self._quiet_since = asyncio.get_running_loop().time()

    async def read(self, within: float | None = None) -> Frame:
        """The next frame, checked; responses and events are also kept for whoever waits for them."""
        frame = await self.socket.next(within, since=None if within else self._quiet_since)
        expect.that(frame is not None, f"{ENDPOINT} to stay open", f"closed with {self.socket.close_code}")
        self._exam.schemas.fit("frame", frame, f"a frame of {ENDPOINT}")
        if frame.get("event") not in OUTSIDE_RUNS:  # ticks do not prolong a wait
            now = asyncio.get_running_loop().time()
            self._exam.http.waits.went_on(now - self._quiet_since)
            self._quiet_since = now
        if frame.get("event") != "notification":
            self.order.append(frame.get("event") or frame["type"])
        match frame:
            case {"type": "res"}:
                self._responses[frame["id"]] = frame
            case {"type": "event", "event": "tick"}:
                self._exam.schemas.fit("tick", frame, "a tick")
                self.ticks.append(frame)
            case {"type": "event", "event": "notification"}:
                pass
            case {"type": "event"}:
                self._waiting.append(self._exam.event(frame["payload"], frame))
        return dict(frame)

    @property
    def heard(self) -> list[str]:
        """The kinds of the frames read so far, ticks left out."""
        return [name for name in self.order if name != "tick"]

    # -- requests ------------------------------------------------------------------------------------------------------

    async def request(self, method: str, params: Any) -> str:
        """Send a request frame; its id."""
        name = str(uuid4())
        await self.socket.send({"type": "req", "id": name, "method": method, "params": params})
        return name

    async def response(self, name: str) -> Frame:
        """The response to the request of this id."""
        self._quiet_since = asyncio.get_running_loop().time()
        with self._exam.http.waits.goal("a response"):
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

    async def ask(self, method: str, params: Any) -> Frame:
        return await self.response(await self.request(method, params))

    async def accepted(self, method: str, params: Any) -> Frame:
        """The payload of a response that must be ok."""
        response = await self.ask(method, params)
        expect.that(response["ok"], f"{method} to be answered with ok", response)
        return dict(response["payload"])

    async def refused(self, method: str, params: Any, why: str) -> Frame:
        """The error of a response that must not be ok."""
        response = await self.ask(method, params)
        expect.that(not response["ok"], f"{method} to be answered with ok false, because {why}", response)
        return dict(response["error"])

    async def ping(self) -> Frame:
        """Ask whether the line is alive; all that was sent before the pong has been read then."""
        self._quiet_since = asyncio.get_running_loop().time()
        await self.socket.send({"type": "ping"})
        with self._exam.http.waits.goal("a pong"):
            while (frame := await self.read())["type"] != "pong":
                pass
        return frame

    # -- runs ----------------------------------------------------------------------------------------------------------

    def params(self, message: str, **more: Any) -> dict[str, Any]:
        return self._exam.identity | {"message": message} | more

    async def chat(self, message: str, **more: Any) -> Run:
        """Send a chat message, which must be accepted; the run has yet to be read."""
        await self.accepted("chat.send", self.params(message, **more))
        return self.run(f"chat.send {message!r}")

    def run(self, asked: str) -> Run:
        """The next run of this line that nobody reads yet."""
        return Run(asked, self._next_of, waits=self._exam.http.waits)

    async def tell(self, situation: str, **more: Any) -> Run:
        """A run of the profile's prompt for this situation."""
        return await self.chat(self._exam.profile.prompt(situation), **more)

    async def _next_of(self, run: Run) -> Event:
        """The next event of this run: its session is the first that no other run has claimed."""
        self._quiet_since = asyncio.get_running_loop().time()
        while True:
            for place, event in enumerate(self._waiting):
                if run.session is None and event.session_id not in self._claimed:
                    run.session = event.session_id
                    self._claimed.add(run.session)
                if event.session_id == run.session:
                    return self._waiting.pop(place)
            await self.read()

    async def caught(self, run: Run, is_elsewhere: bool = False) -> None:
        """A run that had come to its end before something was done to it cannot be judged by what was done.

        What was done elsewhere than on this line may have been overtaken by frames that are still to be read.
        """
        with suppress(Failed):
            if is_elsewhere:
                await self.ping()
        ends = [event.data for event in self._waiting if (event.session_id, event.type) == (run.session, "session_end")]
        if any(data.get("status") == "completed" for data in ends):
            raise NotTestable(expect.TOO_QUICK)

    async def settle(self, run: Run) -> Run:
        """Read what else has been sent of the run by now."""
        await self.ping()
        while any(event.session_id == run.session for event in self._waiting):
            await run.next()
        return run

    @property
    def unread(self) -> list[str]:
        """The types of the events that no run has read."""
        return [event.type for event in self._waiting]
