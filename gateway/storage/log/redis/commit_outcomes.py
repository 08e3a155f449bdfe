"""What becomes of records on their way into Redis: who waits until they are stored, and why they may not be."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from gateway.errors import GatewayError, Overloaded

Covers = Callable[[str], bool]
"""Whether a session is concerned, by its id."""
Waiter = tuple[int, asyncio.Future[None]]
"""A record, and the future that is resolved when it is stored."""


class CommitWaiters:
    """The tasks that wait until a record of a session is stored."""

    def __init__(self) -> None:
        self._waiters: dict[str, list[Waiter]] = {}

    async def wait(self, session_id: str, seq: int) -> None:
        """Return when that record is stored; raises why it will not be."""
        done = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(session_id, []).append((seq, done))
        await done

    def resolve(self, session_id: str, upto: int) -> None:
        """The records up to this one are stored."""
        waiting = self._waiters.pop(session_id, [])
        later = [waiter for waiter in waiting if waiter[0] > upto]
        if later:
            self._waiters[session_id] = later
        for seq, done in waiting:
            if seq <= upto and not done.done():
                done.set_result(None)

    def refuse(self, session_id: str, error: GatewayError) -> None:
        for _, done in self._waiters.pop(session_id, ()):
            if not done.done():
                done.set_exception(error)

    def refuse_all(self, error: GatewayError) -> None:
        for session_id in list(self._waiters):
            self.refuse(session_id, error)


class LeaseLost(Overloaded):
    """Another server writes the session by now: nothing was stored, and the client may ask that server."""

    nothing_stored = True


class SessionLimitReached(Overloaded):
    """There are as many sessions as there may be: nothing of the new session was stored."""

    nothing_stored = True


class LeaseListener(Protocol):
    """The cluster, as the log sees it: the log reports sessions that this server does not write any more."""

    def lease_lost(self, session_id: str) -> None:
        """Another server writes this session, or what Redis has of it is not what it had."""
    def data_lost(self, covers: Covers) -> None:
        """Redis has lost its data: the sessions that this is true of are not there any more."""
    def primary_changed(self, covers: Covers) -> None:
        """Another server is the primary of these sessions, and may lack the last of what the one before had."""
