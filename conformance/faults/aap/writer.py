"""The writer of the AAP reference server: what happens in a turn becomes a stream of events, or one body."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from conformance.faults.aap.modes import TurnEvent, in_deltas, in_messages, in_one_body
from conformance.faults.aap.requests import NewTurn


class Writer:
    """Writes the answer to a turn."""

    stream_type = "text/event-stream"

    async def answer_turn(
        self, request: web.Request, turn: NewTurn, happened: AsyncIterator[TurnEvent]
    ) -> web.StreamResponse:
        if turn.stream == "none":
            return web.json_response(await self.in_one_body(happened))
        response = web.StreamResponse(headers={"Content-Type": self.stream_type})
        await response.prepare(request)
        events = self.in_deltas(happened) if turn.stream == "delta" else self.in_messages(happened)
        async for name, body in self.whole_stream(events, turn):
            with suppress(ConnectionResetError):
                await response.write(self.frame(name, body))
            await asyncio.sleep(0)
        with suppress(ConnectionResetError):
            await response.write_eof()
        return response

    def in_deltas(self, happened: AsyncIterator[TurnEvent]) -> AsyncIterator[tuple[str, Any]]:
        return in_deltas(happened)

    def in_messages(self, happened: AsyncIterator[TurnEvent]) -> AsyncIterator[tuple[str, Any]]:
        return in_messages(happened)

    async def in_one_body(self, happened: AsyncIterator[TurnEvent]) -> dict[str, Any]:
        return await in_one_body(happened)

    async def whole_stream(
        self, events: AsyncIterator[tuple[str, Any]], turn: NewTurn
    ) -> AsyncIterator[tuple[str, Any]]:
        """The whole stream, turn_start first."""
        yield "turn_start", {}
        async for event in events:
            yield event

    def frame(self, name: str, body: Any) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(body))
