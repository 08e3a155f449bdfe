"""All routes of Blade, one file per group, and the documented paths that answer 501."""

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web

import gateway.model as m
from adapters.blade.server.socket import SOCKET, ChatSocket, decode_packet, software_of
from adapters.blade.wire import BladeSettings
from gateway.http import Answers, Context, json_response
from gateway.http.socketio import SocketIOServer
from gateway.ports import SharedKind, ShownResource

from .checkpoints import checkpoint_routes, replay_routes
from .keys import key_routes
from .memories import memory_routes
from .scheduled_tasks import task_routes
from .service import service_routes
from .sessions import HARD_LIMIT_FACTOR, SessionRoutes
from .sharing import archive_routes, share_routes
from .skills import skill_routes
from .statistics import statistics_routes
from .workspace import workspace_routes


def not_implemented_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    return [
        web.route(method, f"{context.mount}{path}", _not_implemented(context, what))
        for method, path, what in NOT_IMPLEMENTED_PATHS
    ]


ROUTE_GROUPS = (
    service_routes, memory_routes, key_routes, workspace_routes, share_routes, checkpoint_routes, archive_routes,
    task_routes, replay_routes, skill_routes, statistics_routes, not_implemented_routes,
)


def rest_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    return [route for room in ROUTE_GROUPS for route in room(context)]


Handler = Callable[[web.Request], Awaitable[web.Response]]
SESSION_PATH = "/sessions/{id}"
NOT_IMPLEMENTED_PATHS: tuple[tuple[str, str, str], ...] = (
    ("POST", f"{SESSION_PATH}/switch-branch", "branches"),
    ("POST", f"{SESSION_PATH}/background-tasks/{{task}}/stop", "stops of single background tasks"),
    ("GET", f"{SESSION_PATH}/skill-stats", "statistics of skills"),
    ("POST", f"{SESSION_PATH}/share-file", "shared folders"),
    ("GET", "/sessions/extra_info/by_task/{id}", "searches for the session of a task"),
    ("GET", "/skills/scenario-resources", "resources of scenarios"),
    ("*", "/skill-store/{rest:.*}", "skill stores"),
    ("*", "/published-apps{rest:(/.*)?}", "published apps"),
    ("*", "/frontend_config/{rest:.*}", "settings of web pages"),
    ("*", "/payloads/{rest:.*}", "annotations of requests"),
    ("*", "/gis/{rest:.*}", "maps"),
    ("*", "/users/{rest:.*}", "computers of users"),
    ("*", "/solutions{rest:.*}", "solutions"),
    ("*", "/prod_{rest:.*}", "products"),
    ("*", "/env{rest:(/.*)?}", "environments"),
    ("*", "/registry/{rest:.*}", "registries"),
    ("*", "/admin/{rest:.*}", "administrators' ways"),
    ("*", "/auth/{rest:.*}", "passwords and cookies"),
    ("*", "/user/{rest:.*}", "user profiles"),
)
"""Method, path below the mount, and what it would be; they come last, so that served routes go first."""


def _not_implemented(context: Context[BladeSettings], what: str) -> Handler:
    @Answers(is_absent=True)
    async def absent(request: web.Request) -> web.Response:
        message = f"{request.method} {request.path}: {what} are not part of this gateway"
        _, body = context.table.error(m.FaultCode.UNSUPPORTED, message=message)
        return json_response(body, 501)

    return absent


RESOURCES = {
    SharedKind.TOOL: ShownResource(words="`disable_tools` of a new session"),
    SharedKind.MCP_SERVER: ShownResource(words="new sessions have those of their agent"),
    SharedKind.SKILL: ShownResource(("/skills", "/sessions/{id}/skills"), "`primary_skill_id` of a new session"),
    SharedKind.MEMORY: ShownResource(("/memories",), "`memory_enabled` of a session"),
    SharedKind.SCHEDULE: ShownResource(("/scheduled-tasks",)),
    SharedKind.SETTINGS: ShownResource(words="fill in new sessions"),
    SharedKind.FILE: ShownResource(words="a session has files of its own, in its workspace"),
    SharedKind.KEY: ShownResource(("/user/api-keys",)),
}
"""Where the routes show the resources that dialects share; `dragoman check --resources` prints it."""


def routes(context: Context[BladeSettings]) -> Iterable[web.RouteDef]:
    chat, at, settings = ChatSocket(context), context.mount, context.settings
    blade = SessionRoutes(context, chat)
    sockets = SocketIOServer(
        chat, context.guard, patience=lambda: context.send_timeout, ping_seconds=settings.ping_seconds,
        most_bytes=HARD_LIMIT_FACTOR * settings.message_bytes, reads=decode_packet,
        software=software_of,
    )
    session = f"{at}/sessions/{{id}}"
    return [
        *sockets.routes(settings.socket_path, SOCKET),
        web.get(f"{at}/health", blade.health),
        web.post(f"{at}/sessions", blade.create),
        web.get(f"{at}/sessions", blade.listed),
        web.get(session, blade.get),
        web.patch(session, blade.rename),
        web.delete(session, blade.delete),
        web.put(f"{session}/env", blade.env),
        web.patch(f"{session}/pin", blade.pin),
        web.patch(f"{session}/sharing", blade.share),
        web.patch(f"{session}/memory", blade.remember),
        web.get(f"{session}/messages", blade.messages),
        web.get(f"{session}/history", blade.history),
        web.post(f"{session}/compact", blade.compact),
        web.post(f"{session}/chat", blade.chat),
        *rest_routes(context),
    ]
