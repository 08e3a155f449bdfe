"""The streams of the scripted CAS server: each client reads a session from its cursor, until the server cuts it off."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from conformance.clients.reply_queue import ReplyQueue
from conformance.clients.request_recorder import reply
from conformance.clients.sse import EventStream
from conformance.faults.cas.server import CasServer
from conformance.faults.cas.state import Body, Session, mint, now

HEARTBEAT = 10.0
OPENING = 5.0
"""Seconds for which a cut waits for a stream that it can cut."""


@dataclass
class Reader:
    """One open stream: how far it has been sent."""

    stream: EventStream
    place: int
    last_id: str | None = None
    is_cut: bool = False


class Streams:
    """Serves streams, and cuts them."""

    def __init__(self, reply_queue: ReplyQueue, server: CasServer) -> None:
        self._reply_queue, self._server = reply_queue, server
        self._readers: dict[str, list[Reader]] = {}

    async def get_stream(self, request: web.Request) -> web.StreamResponse:
        session = self._server.sessions.find(request)
        status = self._reply_queue.option("stream_status")
        if status:
            self._reply_queue.traffic.mark("stream refused")
            error = {"type": "api_error", "message": "No streams now."}
            return reply({"type": "error", "request_id": mint("req"), "error": error}, status)
        stream = EventStream(request, self._reply_queue.traffic, is_odd=bool(self._reply_queue.option("odd")))
        reader = Reader(stream, self._start(request, session))
        await stream.open()
        readers = self._readers.setdefault(session.view["id"], [])
        readers.append(reader)
        session.wake()
        try:
            with suppress(ConnectionResetError):
                await stream.comment("connected")
                await self._pump(session, reader, self._server.streams.forms(request, session))
        finally:
            readers.remove(reader)
        return stream.response

    def _start(self, request: web.Request, session: Session) -> int:
        """Where the stream begins; a cursor that is unknown counts as none."""
        cursor = request.headers.get("Last-Event-ID") or request.query.get("after_id")
        places = [place for place, item in enumerate(session.feed) if item.body.get("id") == cursor]
        return places[0] + 1 if cursor and places else self._server.streams.beginning(session)

    async def _pump(self, session: Session, reader: Reader, forms: set[str]) -> None:
        opened = session.end
        while not reader.is_cut:
            while reader.place < session.end:
                item = session.feed[reader.place]
                if self._server.streams.is_shown(item, session, None, forms, is_old=reader.place < opened):
                    body = item.body | self._reply_queue.members
                    await reader.stream.send(body["type"], body, body.get("id"))
                    self._server.streams.carry(session, item.body, None)
                    reader.last_id = body.get("id") or reader.last_id
                reader.place += 1
            session.wake()
            await self._news(session, reader)

    async def _news(self, session: Session, reader: Reader) -> None:
        news = session.news
        if reader.place < session.end or reader.is_cut:
            return
        try:
            async with asyncio.timeout(HEARTBEAT):
                await news.wait()
        except TimeoutError:
            await reader.stream.comment()

    # -- what the server does to them ----------------------------------------------------------------------------------

    async def beat(self, session: Session) -> None:
        for reader in self._readers.get(session.view["id"], ()):
            await reader.stream.comment()

    async def cut(self, session: Session, *, is_within: bool) -> None:
        """Cut every stream once it has sent all there is; if none opens, there is nothing to cut."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OPENING):
                while not self._caught_up(session):
                    await session.news.wait()
        for reader in self._caught_up(session):
            reader.is_cut = True
            event = _partial(session) if is_within else None
            await reader.stream.cut(*((event["type"], event, event["id"]) if event else ()))
            self._reply_queue.traffic.note_cut(reader.last_id or "")
        session.wake()

    def _caught_up(self, session: Session) -> list[Reader]:
        readers = self._readers.get(session.view["id"], ())
        return [reader for reader in readers if reader.place >= session.end and not reader.is_cut]


def _partial(session: Session) -> Body:
    """An event of which a client sees only a part."""
    words = [{"type": "text", "text": "words that get lost"}]
    about = {"session_id": session.view["id"], "created_at": now(), "processed_at": now()}
    return {"id": mint("evt"), "type": "agent.message", **about, "content": words}
