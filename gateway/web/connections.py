"""What each credential has open, so that it ends when the credential is revoked or expires."""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aiohttp import web

from gateway.ports import Caller, Clock

GRACE_SECONDS = 0.25
"""A request that is nearly answered is answered; one that goes on after so many seconds is cut."""
REVOKED = b"the key was revoked, or its time is over"
"""What the client of a WebSocket is told."""


@dataclass(eq=False, slots=True)
class Connection:
    """One request or socket of somebody who was let in; `end` cuts it."""

    credential: str
    end: Callable[[], None]
    expiry: asyncio.TimerHandle | None = None
    is_over: bool = False
    """Whether the credential is no good any more; nothing that the client says is taken then."""


CONNECTION = web.RequestKey("connection", Connection)


class Connections:
    """Who has come in with which credential, and is still here."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._open: dict[str, set[Connection]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, caller: Caller, end: Callable[[], None]) -> Connection:
        made = Connection(caller.credential, end)
        self._open.setdefault(caller.credential, set()).add(made)
        if caller.expires is not None:
            left = max(0.0, caller.expires - self._clock())
            made.expiry = asyncio.get_running_loop().call_later(left, self._cut, made)
        return made

    def discard(self, connection: Connection) -> None:
        if connection.expiry is not None:
            connection.expiry.cancel()
        if (held := self._open.get(connection.credential)) is not None:
            held.discard(connection)
            if not held:
                del self._open[connection.credential]

    def end(self, credentials: Iterable[str]) -> None:
        """These credentials open nothing any more: whoever is still here in a moment is cut."""
        for credential in credentials:
            for connection in self._open.get(credential, ()):
                connection.is_over = True
                asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cut, connection)

    def _cut(self, connection: Connection) -> None:
        if connection in self._open.get(connection.credential, ()):
            connection.is_over = True
            connection.end()
