"""Who waits until which record of a session is stored."""

import asyncio

from gateway.errors import GatewayError

Waiter = tuple[int, asyncio.Future[None]]
"""Up to which record, and who is told."""


class Waiting:
    """Those who wait, by session; each is told once, or has gone."""

    def __init__(self) -> None:
        self._waiters: dict[str, list[Waiter]] = {}

    async def wait(self, session_id: str, seq: int) -> None:
        """Come back when that record is stored; raises why it is not going to be."""
        done = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(session_id, []).append((seq, done))
        await done

    def tell(self, session_id: str, upto: int) -> None:
        """Up to there it is stored."""
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
