"""All routes of ZenFlux, one file per group, and the documented paths that answer 501."""

from collections.abc import Iterable, Iterator

from aiohttp import web

from adapters.zenflux.bodies import RefusalBody, spell
from adapters.zenflux.wire import ZenfluxSettings
from gateway.http import Answers, Context, json_response
from gateway.ports import SharedKind, ShownResource

from .agents import routes_of_agents
from .conversations import ConversationRoutes
from .mcp_servers import routes_of_mcp_servers
from .memories import routes_of_memories
from .runs import ConfirmationRoutes, RunRoutes
from .service import ServiceRoutes, routes_of_docs
from .settings import routes_of_settings
from .skills import routes_of_skills
from .tasks import TaskRoutes, routes_of_tasks
from .tools import routes_of_tools

RESOURCES = {
    SharedKind.AGENT: ShownResource(
        ("/agents",), "`chat.send.agent_id`, `POST /conversations?agent_id=`"),
    SharedKind.TOOL: ShownResource(("/agents", "/tools"), "`enabled_capabilities` of an agent"),
    SharedKind.MCP_SERVER: ShownResource(("/tools/mcp", "/agents/{id}/mcp")),
    SharedKind.SKILL: ShownResource(("/skills",)),
    SharedKind.MEMORY: ShownResource(("/mem0",), "`memory.mem0_enabled` of an agent"),
    SharedKind.SCHEDULE: ShownResource(("/scheduled-tasks", "/tasks")),
    SharedKind.SETTINGS: ShownResource(("/settings",)),
    SharedKind.FILE: ShownResource(("/files",)),
    SharedKind.DOCUMENT: ShownResource(("/docs",)),
}
"""Where the routes show the resources that dialects share; `dragoman check --resources` prints it."""


def routes(context: Context[ZenfluxSettings]) -> Iterable[web.RouteDef]:
    at = context.mount
    return [
        *_run_routes(RunRoutes(context), at),
        *_conversation_routes(ConversationRoutes(context), at),
        *_confirmation_routes(ConfirmationRoutes(context), at),
        *_service_routes(ServiceRoutes(context), at),
        *_task_routes(TaskRoutes(context), f"{at}/scheduled-tasks"),
        *routes_of_agents(context),
        *routes_of_docs(context),
        *routes_of_mcp_servers(context),
        *routes_of_memories(context),
        *routes_of_settings(context),
        *routes_of_skills(context),
        *routes_of_tasks(context),
        *routes_of_tools(context),
        *not_implemented_routes(context),
    ]


def _run_routes(runs: RunRoutes, at: str) -> list[web.RouteDef]:
    return [
        web.get(f"{at}/ws/chat", runs.socket),
        web.post(f"{at}/chat", runs.chat),
        web.get(f"{at}/sessions", runs.listed),
        web.get(f"{at}/session/{{id}}", runs.get),
        web.delete(f"{at}/session/{{id}}", runs.end),
        web.post(f"{at}/session/{{id}}/stop", runs.stop),
        web.post(f"{at}/session/{{id}}/confirm_continue", runs.confirm_continue),
        web.post(f"{at}/session/{{id}}/rollback", runs.rollback),
        web.get(f"{at}/session/{{id}}/rollback/preview", runs.preview),
    ]


def _conversation_routes(conversations: ConversationRoutes, at: str) -> list[web.RouteDef]:
    return [
        web.post(f"{at}/conversations", conversations.create),
        web.get(f"{at}/conversations", conversations.listed),
        web.get(f"{at}/conversations/search", conversations.search),
        web.get(f"{at}/conversations/{{id}}", conversations.get),
        web.put(f"{at}/conversations/{{id}}", conversations.rename),
        web.delete(f"{at}/conversations/{{id}}", conversations.delete),
        web.get(f"{at}/conversations/{{id}}/messages", conversations.messages),
        web.post(f"{at}/conversations/{{id}}/preload", conversations.preload),
        web.get(f"{at}/conversations/{{id}}/summary", conversations.summary),
    ]


def _confirmation_routes(confirmations: ConfirmationRoutes, at: str) -> list[web.RouteDef]:
    return [
        web.get(f"{at}/human-confirmation/pending", confirmations.pending),
        web.get(f"{at}/human-confirmation/{{id}}", confirmations.get),
        web.post(f"{at}/human-confirmation/{{id}}", confirmations.respond),
        web.delete(f"{at}/human-confirmation/{{id}}", confirmations.cancel),
    ]


def _task_routes(tasks: TaskRoutes, at: str) -> list[web.RouteDef]:
    return [
        web.get(at, tasks.listed),
        web.get(f"{at}/{{id}}", tasks.get),
        web.delete(f"{at}/{{id}}", tasks.delete),
        web.post(f"{at}/{{id}}/resume", tasks.resume),
        web.post(f"{at}/{{id}}/pause", tasks.pause),
        web.post(f"{at}/{{id}}/cancel", tasks.pause),
    ]


def _service_routes(about: ServiceRoutes, at: str) -> list[web.RouteDef]:
    return [
        web.post(f"{at}/files/upload", about.upload),
        web.get(f"{at}/files/{{id}}", about.download),
        web.get(f"{at}/models", about.models),
        web.get(f"{at}/models/providers/supported", about.providers),
        web.get(f"{at}/settings/embedding-status", about.embedding_status),
        web.get("/health", about.health),
        web.get("/health/live", about.live),
        web.get("/health/metrics", about.metrics),
    ]


NOT_IMPLEMENTED = 501
NOT_IMPLEMENTED_PATHS = {
    "/realtime/ws": "GET",
    "/realtime/ws/{id}": "GET",
    "/realtime/sessions": "GET",
    "/realtime/sessions/{id}": "DELETE",
}
"""Methods by path, in an order in which no path hides another."""


def not_implemented_routes(context: Context[ZenfluxSettings]) -> Iterator[web.RouteDef]:
    @Answers(is_absent=True)
    async def refuse(request: web.Request) -> web.Response:
        message = f"{request.method} {request.path} is not served by this gateway"
        return json_response(spell(context.table, RefusalBody(code=NOT_IMPLEMENTED, message=message)), NOT_IMPLEMENTED)

    for path, methods in NOT_IMPLEMENTED_PATHS.items():
        for method in methods.split():
            yield web.route(method, f"{context.mount}{path}", refuse)
