"""`/healthz` says that the process lives, `/readyz` whether it takes work."""

from enum import StrEnum

from aiohttp import web

from .answers import Answers
from .mount_prefix import HEALTH_PATH, HEALTH_ROUTE
from .security import public


class ReadinessState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Readiness:
    """The state of the server between start and stop: starting, ready, draining."""

    def __init__(self) -> None:
        self.state = ReadinessState.STARTING

    @property
    def is_ready(self) -> bool:
        return self.state is ReadinessState.READY

    @property
    def is_draining(self) -> bool:
        return self.state is ReadinessState.DRAINING

    def mark_ready(self) -> None:
        """Mark the server as ready; a draining server stays draining."""
        if self.state is ReadinessState.STARTING:
            self.state = ReadinessState.READY

    def mark_draining(self) -> None:
        """Mark the server as draining: it takes no new work, and running turns may finish."""
        self.state = ReadinessState.DRAINING


def health_routes(readiness: Readiness) -> list[web.RouteDef]:
    """Return `GET /healthz`, 200 while the process lives, and `GET /readyz`, 503 while it starts or drains."""
    @public
    @Answers({"status": str})
    async def alive(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, headers=_NO_STORE)

    @public
    @Answers({"status": ReadinessState}, others={503: {"status": ReadinessState}})
    async def ready(request: web.Request) -> web.Response:
        status = 200 if readiness.is_ready else 503
        return web.json_response({"status": readiness.state}, status=status, headers=_NO_STORE)

    return [web.get(HEALTH_PATH, alive, name=HEALTH_ROUTE), web.get("/readyz", ready)]


_NO_STORE = {"Cache-Control": "no-store"}
