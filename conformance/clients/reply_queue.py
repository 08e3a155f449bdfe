"""The queue of a scripted server's replies: which reply comes next, and which replies are still being played."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web

from conformance.clients.agent_actions import Reply
from conformance.clients.client_traffic import ClientTraffic
from conformance.clients.situation import Situation
from conformance.kit.transcript import Transcript


class ReplyQueue:
    """The replies of the current situation, and the client's traffic in it."""

    def __init__(self) -> None:
        self.situation: Situation | None = None
        self.traffic = ClientTraffic(Transcript())
        self._taken = self._playing = 0

    def begin(self, situation: Situation, traffic: ClientTraffic) -> None:
        self.situation, self.traffic = situation, traffic
        self._taken = 0

    @property
    def members(self) -> dict[str, object]:
        """Unknown members that every event has in this situation."""
        return dict(self.situation.options.get("members", {})) if self.situation else {}

    def option(self, name: str) -> Any:
        return self.situation.options.get(name) if self.situation else None

    def next_reply(self) -> Reply:
        """The reply to the next message; the last one stays."""
        replies: tuple[Reply, ...] = self.situation.replies if self.situation else ((),)
        self._taken += 1
        return replies[min(self._taken, len(replies)) - 1]

    @contextmanager
    def playing(self) -> Iterator[ClientTraffic]:
        """Count a reply as being played; yield the traffic that it belongs to."""
        self._playing += 1
        traffic = self.traffic
        try:
            yield traffic
        finally:
            self._playing -= 1
            traffic.mark("played")

    @property
    def is_over(self) -> bool:
        """Whether every reply of the situation was played."""
        return self.situation is not None and self._taken >= len(self.situation.replies) and not self._playing


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int, *, cancels: bool) -> AsyncIterator[int]:
    """Serve the application; the port, which the system chooses if it is 0.

    `cancels` says whether a request is cancelled when its client hangs up.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=cancels)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
