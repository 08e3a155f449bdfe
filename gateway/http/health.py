"""Whether the server lives, and whether it should be sent work: `/healthz` and `/readyz`."""

from enum import StrEnum

from aiohttp import web

from .security import public


class ReadinessState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


class Readiness:
    """Where the server is between its start and its end; it goes one way only."""

    def __init__(self) -> None:
        self.state = ReadinessState.STARTING

    @property
    def is_ready(self) -> bool:
        return self.state is ReadinessState.READY

    @property
    def is_draining(self) -> bool:
        return self.state is ReadinessState.DRAINING

    def mark_ready(self) -> None:
        """Everything is wired; a server that is draining stays so."""
        if self.state is ReadinessState.STARTING:
            self.state = ReadinessState.READY

    def mark_draining(self) -> None:
        """No new work, please: running turns may finish."""
        self.state = ReadinessState.DRAINING


def health_routes(readiness: Readiness) -> list[web.RouteDef]:
    """`GET /healthz` answers while the process lives; `GET /readyz` is 503 while it starts or drains."""
    @public
    async def alive(request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"}, headers=_NO_STORE)

    @public
    async def ready(request: web.Request) -> web.Response:
        status = 200 if readiness.is_ready else 503
        return web.json_response({"status": readiness.state}, status=status, headers=_NO_STORE)

    return [web.get("/healthz", alive), web.get("/readyz", ready)]


_NO_STORE = {"Cache-Control": "no-store"}
