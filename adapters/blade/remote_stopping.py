"""A chat at somebody's server brought to its end, over a connection of its own."""

from typing import Any

import aiohttp

from gateway.errors import BackendFailed, GatewayError, TimedOut
from gateway.upstream import Cut, Unreachable

from .hearing_words import words
from .remote_following import Books
from .remote_place import Place
from .remote_socket import Ack, Line, connected

STOP = 10.0
"""How long a server may take to acknowledge that it stops."""


async def stop(session: aiohttp.ClientSession, place: Place, books: Books, session_id: str) -> None:
    """As often as it takes to be heard, within patience."""
    attempts = place.patience.attempts
    for attempt in range(1, attempts + 1):
        try:
            async with connected(session, place) as line:
                await _stop(line, place, books, session_id)
            return
        except (Cut, Unreachable):
            if attempt == attempts:
                raise


async def _stop(line: Line, place: Place, books: Books, session_id: str) -> None:
    """Older servers stop and do not say so: then their status is what counts."""
    sent = await line.emit("chat:stop", {"session_id": session_id})
    try:
        while not isinstance(heard := await line.receive(min(STOP, place.patience.first_byte)), Ack):
            if heard.name == "system:error":
                raise _not_stopped(place, heard.body)
    except TimedOut:
        if await books.status(session_id) in (words().session_running, words().session_waiting):
            raise
        return
    if heard.number == sent and isinstance(heard.body, dict) and heard.body.get("status") == "error":
        raise _not_stopped(place, heard.body)


def _not_stopped(place: Place, body: Any) -> GatewayError:
    told = body.get("message") if isinstance(body, dict) else None
    return BackendFailed(f"{place.name} refused to stop: {place.told(told or 'no reason given')}")
