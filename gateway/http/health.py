"""`/healthz` says that the process lives, `/readyz` whether it takes work."""

from enum import StrEnum

from aiohttp import web

from .answers import Answers
from .mount_prefix import HEALTH_PATH, HEALTH_ROUTE
from .security import public

TOLD_TO_STOP = "the server was told to stop"
DRAIN_REQUESTED = "an operator has asked the server to drain: dragoman cluster drain"


class ReadinessState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Readiness:
    """The state of the server between start and stop: starting, ready, draining."""

    def __init__(self) -> None:
        self.state = ReadinessState.STARTING
        self.reason = "the server starts, and loads what it has stored"
        """Why the server takes no new work; empty while it does."""

    @property
    def is_ready(self) -> bool:
        return self.state is ReadinessState.READY

    @property
    def is_draining(self) -> bool:
        return self.state is ReadinessState.DRAINING

    def mark_ready(self) -> None:
        """Mark the server as ready; a draining server stays draining."""
        if self.state is ReadinessState.STARTING:
            self.state, self.reason = ReadinessState.READY, ""

    def mark_draining(self, why: str = TOLD_TO_STOP) -> None:
        """Mark the server as draining: it takes no new work, and running turns may finish."""
        self.state, self.reason = ReadinessState.DRAINING, why


def health_routes(readiness: Readiness) -> list[web.RouteDef]:
    """Return `GET /healthz`, 200 while the process lives, and `GET /readyz`, 503 while it starts or drains."""
    @public
    @Answers({"status": str})
    async def alive(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, headers=_NO_STORE)

    @public
    @Answers({"status": ReadinessState}, others={503: {"status": ReadinessState, "reason": str}})
    async def ready(request: web.Request) -> web.Response:
        if readiness.is_ready:
            return web.json_response({"status": readiness.state}, headers=_NO_STORE)
        answer = {"status": readiness.state, "reason": readiness.reason}
        return web.json_response(answer, status=503, headers=_NO_STORE)

    return [web.get(HEALTH_PATH, alive, name=HEALTH_ROUTE), web.get("/readyz", ready)]


_NO_STORE = {"Cache-Control": "no-store"}
