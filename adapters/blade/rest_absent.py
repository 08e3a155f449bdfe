"""What Blade's pages list and this gateway has not: said so, in one place."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from gateway.model import FaultCode
from gateway.web import Context, reply

Handler = Callable[[web.Request], Awaitable[web.Response]]

SESSION = "/sessions/{id}"
ABSENT: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{SESSION}/switch-branch", "branches"),
    ("POST", f"{SESSION}/tokenize", "token counts"),
    ("GET", f"{SESSION}/context-stats", "context statistics"),
    ("GET", f"{SESSION}/tasks", "task lists"),
    ("*", f"{SESSION}/background-tasks{{rest:.*}}", "background tasks"),
    ("*", f"{SESSION}/skills{{rest:.*}}", "skills"),
    ("*", "/tokenize{rest:.*}", "token counts"),
    ("*", "/skills{rest:.*}", "skills"),
    ("*", "/solutions{rest:.*}", "solutions"),
    ("*", "/prod_{rest:.*}", "products"),
    ("*", "/env{rest:(/.*)?}", "environments"),
    ("*", "/registry/{rest:.*}", "registries"),
    ("*", "/admin/{rest:.*}", "administrators' ways"),
    ("*", "/auth/{rest:.*}", "passwords and cookies"),
    ("*", "/user/{rest:.*}", "user profiles"),
)
"""Method, path below the mount, and what it would be. They come last: what is served goes before what is not."""


def absent_routes(context: Context) -> list[web.RouteDef]:
    return [web.route(method, f"{context.mount}{path}", _absent(context, what)) for method, path, what in ABSENT]


def _absent(context: Context, what: str) -> Handler:
    async def absent(request: web.Request) -> web.Response:
        message = f"{request.method} {request.path}: {what} are not part of this gateway"
        _, body = context.table.error(FaultCode.UNSUPPORTED, message=message)
        return reply(body, 501)

    return absent
