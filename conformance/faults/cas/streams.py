"""The streams of the CAS reference server: which events each has, and how they are written."""

import asyncio
from contextlib import suppress

import orjson
from aiohttp import web

from conformance.faults.cas.front import given_list
from conformance.faults.cas.sessions import Sessions
from conformance.faults.cas.state import Body, Item, Session
from conformance.faults.cas.threads import Threads
from conformance.faults.refusal import Refusal


class Streams:
    """Writes streams: the stored events of a session, then those that happen."""

    heartbeat = 0.2
    heartbeat_comment = "heartbeat"

    def __init__(self, sessions: Sessions, threads: Threads) -> None:
        self.sessions = sessions
        self.threads = threads

    async def get_stream(self, request: web.Request) -> web.StreamResponse:
        return await self.follow(request, self.sessions.find(request))

    async def follow(self, request: web.Request, session: Session, thread: str | None = None) -> web.StreamResponse:
        place = self.start(request, session, thread)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            await self.greet(response)
            await self.pump(response, session, thread, place, self.forms(request, session))
        return response

    async def greet(self, response: web.StreamResponse) -> None:
        await response.write(b": connected\n\n")

    async def beat(self, response: web.StreamResponse) -> None:
        await response.write(f": {self.heartbeat_comment}\n\n".encode())

    async def pump(
        self, response: web.StreamResponse, session: Session, thread: str | None, place: int, forms: set[str]
    ) -> None:
        """Send everything from this place on, until the session is deleted."""
        opened = session.end
        while True:
            while place < session.end:
                item = session.feed[place]
                if self.is_shown(item, session, thread, forms, is_old=place < opened):
                    await response.write(self.frame(item.body))
                    self.carry(session, item.body, thread)
                place += 1
            if self.is_over(session):
                return
            await self.news(response, session)

    def carry(self, session: Session, event: Body, thread: str | None) -> None:
        """A stream of the session has sent an event; remember it if a turn ends or waits there."""
        if thread is None and event["type"] == "session.status_idle":
            session.carried.add(event["id"])

    def is_over(self, session: Session) -> bool:
        return session.is_closed

    async def news(self, response: web.StreamResponse, session: Session) -> None:
        try:
            async with asyncio.timeout(self.heartbeat):
                await session.news.wait()
        except TimeoutError:
            await self.beat(response)

    def forms(self, request: web.Request, session: Session) -> set[str]:
        """Which pieces of events this connection is sent."""
        asked = set(given_list(request, "event_deltas"))
        return asked or ({"raw"} if session.is_incremental else set())

    def is_shown(self, item: Item, session: Session, thread: str | None, forms: set[str], is_old: bool) -> bool:
        if item.form == "stored":
            return self.threads.is_of(item.body, session, thread)
        return not is_old and thread is None and (item.form in forms or self.is_asked(item, session, forms))

    def is_asked(self, item: Item, session: Session, forms: set[str]) -> bool:
        """Whether a delta is of a kind of event this connection asked for."""
        begun = (other.body for other in session.feed if other.of == item.of and other.body["type"] == "event_start")
        return item.form == "deltas" and any(body["event"]["type"] in forms for body in begun)

    def start(self, request: web.Request, session: Session, thread: str | None) -> int:
        """The place in the feed right after the cursor."""
        cursor = request.headers.get("Last-Event-ID") or request.query.get("after_id")
        if cursor is None:
            return 0 if thread else self.beginning(session)
        for place, item in enumerate(session.feed):
            if item.form == "stored" and item.body["id"] == cursor and self.threads.is_of(item.body, session, thread):
                return place + 1
        return session.end if self.is_in_progress(session, cursor) else self.unknown_cursor(session, cursor)

    def is_in_progress(self, session: Session, cursor: str) -> bool:
        """Whether pieces of this event were sent, and not the whole event."""
        return any(item.of == cursor for item in session.feed)

    def beginning(self, session: Session) -> int:
        """Where a stream without a cursor begins: with what no stream has sent of the newest turn, else at the end."""
        turns = [item.body.get("turn_id") for item in session.feed]
        newest = next(filter(None, reversed(turns)), None)
        places = [place for place, turn in enumerate(turns) if newest and turn == newest]
        carried = [place for place in places if session.feed[place].body["id"] in session.carried]
        rest = [place for place in places if place > max(carried, default=-1)]
        return rest[0] if rest else session.end

    def unknown_cursor(self, session: Session, cursor: str) -> int:
        raise Refusal(400, f"{cursor} is no event of this session.")

    def frame(self, body: Body) -> bytes:
        name = b"id: %s\n" % body["id"].encode() if "id" in body else b""
        return name + b"event: %s\ndata: %s\n\n" % (body["type"].encode(), orjson.dumps(body))
