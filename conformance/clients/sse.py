"""A stream of server-sent events from a scripted server: in plain form, in an odd but valid form, or cut off."""

from collections.abc import Iterator
from typing import Any

import orjson
from aiohttp import web

from conformance.clients.client_traffic import ClientTraffic

ODD_CHUNK = 5
"""In the odd form, so many bytes are written at a time: letters, lines and events are cut anywhere."""


class EventStream:
    """Writes events to one client."""

    def __init__(self, request: web.Request, traffic: ClientTraffic, *, is_odd: bool = False) -> None:
        self._request, self._traffic, self._is_odd = request, traffic, is_odd
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})

    async def open(self) -> None:
        await self.response.prepare(self._request)
        self._traffic.transcript.sent("200 text/event-stream")

    async def send(self, name: str | None, body: Any, event_id: str | None = None) -> None:
        text = self._odd(name, body, event_id) if self._is_odd else _plain(name, body, event_id)
        self._traffic.transcript.sent(_plain(name, body, event_id).rstrip("\n"))
        await self._write(text.encode())
        self._traffic.news()

    async def comment(self, words: str = "heartbeat") -> None:
        self._traffic.transcript.sent(f": {words}")
        await self._write(f": {words}\n\n".encode())

    async def cut(self, name: str | None = None, body: Any = None, event_id: str | None = None) -> None:
        """Break off, within this event if it has a body."""
        if body is not None:
            whole = _plain(name, body, event_id).encode()
            await self.response.write(whole[: len(whole) * 2 // 3])
        self._traffic.transcript.remark("the connection is cut" + (" within an event" if body is not None else ""))
        hang_up(self._request)

    async def _write(self, data: bytes) -> None:
        for piece in _pieces(data) if self._is_odd else (data,):
            await self.response.write(piece)

    def _odd(self, name: str | None, body: Any, event_id: str | None) -> str:
        """Fields in another order, without the blank, with other ends of lines, data in two lines, unknown fields."""
        text = orjson.dumps(body, option=orjson.OPT_INDENT_2).decode()
        lines = [f"data:{line}" for line in text.split("\n")]
        about = ["retry:100", "unknown: field", *([f"id:{event_id}"] if event_id else [])]
        return "\r\n".join([*about, *lines, *([f"event:{name}"] if name else []), "", ""])


def hang_up(request: web.Request) -> None:
    """Close the connection of a request."""
    if request.transport is not None:
        request.transport.close()


def _plain(name: str | None, body: Any, event_id: str | None) -> str:
    first = f"id: {event_id}\n" if event_id else ""
    second = f"event: {name}\n" if name else ""
    return f"{first}{second}data: {orjson.dumps(body).decode()}\n\n"


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[place : place + ODD_CHUNK] for place in range(0, len(data), ODD_CHUNK))
