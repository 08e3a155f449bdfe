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
class Admission:
    """One request or socket of somebody who was let in; `end` cuts it."""

    credential: str
    end: Callable[[], None]
    expiry: asyncio.TimerHandle | None = None
    is_over: bool = False
    """Whether the credential is no good any more; nothing that the client says is taken then."""


ADMISSION = web.RequestKey("admission", Admission)


class Admissions:
    """Who has come in with which credential, and is still here."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._open: dict[str, set[Admission]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def add(self, caller: Caller, end: Callable[[], None]) -> Admission:
        made = Admission(caller.credential, end)
        self._open.setdefault(caller.credential, set()).add(made)
        if caller.expires is not None:
            left = max(0.0, caller.expires - self._clock())
            made.expiry = asyncio.get_running_loop().call_later(left, self._cut, made)
        return made

    def discard(self, admission: Admission) -> None:
        if admission.expiry is not None:
            admission.expiry.cancel()
        if (held := self._open.get(admission.credential)) is not None:
            held.discard(admission)
            if not held:
                del self._open[admission.credential]

    def end(self, credentials: Iterable[str]) -> None:
        """These credentials open nothing any more: whoever is still here in a moment is cut."""
        for credential in credentials:
            for admission in self._open.get(credential, ()):
                admission.is_over = True
                asyncio.get_running_loop().call_later(GRACE_SECONDS, self._cut, admission)

    def _cut(self, admission: Admission) -> None:
        if admission in self._open.get(admission.credential, ()):
            admission.is_over = True
            admission.end()
