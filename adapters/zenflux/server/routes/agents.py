"""Agents over HTTP: those of the settings, and those that users make; and the socket that tells when one is made."""


from aiohttp import web
from msgspec import Struct
from pydantic import ValidationError

from adapters.zenflux.server import agents, views
from adapters.zenflux.server.agents import agent_errors, detail_body, summary_body
from adapters.zenflux.wire import AgentChange, NewAgent, ZenfluxSettings, bool_param
from gateway.errors import Forbidden, Invalid, NotFound
from gateway.field_errors import describe_error
from gateway.http import (
    OWNER,
    Answers,
    Context,
    admins_only,
    current_caller,
    dumps,
    read_json,
    read_json_object,
    send_and_close,
)
from gateway.json_values import JsonObject
from gateway.resources import AGENT_NAME

RESERVED_NAMES = frozenset(("templates", "validate", "reload", "preview", "ws", "default-data-path", "global"))
"""Names that are paths, or stand for the library of skills; they cannot be the names of agents."""
ERROR_WORDS = {
    "missing": "REQUIRED_FIELD", "string_too_short": "REQUIRED_FIELD", "string_too_long": "MAX_LENGTH_EXCEEDED",
    "too_long": "MAX_LENGTH_EXCEEDED",
}
"""The word for each kind of mistake in a field; INVALID_FORMAT for all others."""


class FieldWarning(Struct, kw_only=True):
    """What may be meant otherwise in a configuration."""

    field: str
    message: str


class FieldProblem(Struct, kw_only=True):
    """What is wrong in a configuration."""

    field: str
    message: str
    code: str


class FailedReload(Struct, kw_only=True):
    agent_id: str
    error: str


class ReloadedAgents(Struct, kw_only=True):
    """The agents that were read again, and those that could not be."""

    reloaded: tuple[str, ...]
    failed: tuple[FailedReload, ...]


class AgentRoutes:
    """The routes of agents, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.service = context.agent_service

    @Answers(views.wrapped({"total": int, "agents": ["agent.summary"]}), query={"include_inactive": bool})
    async def listed(self, request: web.Request) -> web.Response:
        """List the agents, the default agent first: clients select the first one."""
        owner, inactive = request[OWNER], bool_param(request, "include_inactive", default=False)
        found = [one for one in await self.service.page(owner) if inactive or one.definition.is_active]
        shown = [summary_body(self.context, owner, one) for one in found]
        return views.reply(self.context, {"total": len(shown), "agents": shown})

    @Answers(views.wrapped({"...": "agent.detail", "status": str}), reads=NewAgent)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, NewAgent)
        if body.agent_id in RESERVED_NAMES:
            raise Invalid(f"agent_id: '{body.agent_id}' is a reserved name; choose another", param="agent_id")
        made = await self.service.create(
            request[OWNER], agents.new_definition(self.service, body), body.agent_id or None)
        shown = await detail_body(self.context, request[OWNER], made)
        return views.reply(self.context, {**shown, "status": "creating"})

    @Answers(views.wrapped("agent.detail"))
    async def get(self, request: web.Request) -> web.Response:
        with agent_errors(request.match_info["id"]):
            found = await self.service.get(request[OWNER], request.match_info["id"])
        return views.reply(self.context, await detail_body(self.context, request[OWNER], found))

    @Answers(views.wrapped({"...": "agent.detail", "status": str}), reads=AgentChange)
    async def update(self, request: web.Request) -> web.Response:
        body, agent_id = await read_json(request, AgentChange), request.match_info["id"]
        with agent_errors(agent_id):
            old = await self.service.changeable(request[OWNER], agent_id)
            changed = await self.service.change(
                request[OWNER], agent_id, agents.changed_definition(self.service, old.definition, body),
                expected=old.version)
        shown = await detail_body(self.context, request[OWNER], changed)
        return views.reply(self.context, {**shown, "status": "reloading"})

    @Answers(views.wrapped({"agent_id": str}), query={"force": bool})
    async def delete(self, request: web.Request) -> web.Response:
        agent_id = request.match_info["id"]
        bool_param(request, "force", default=False)
        with agent_errors(agent_id):
            await self.service.delete(request[OWNER], agent_id)
        return views.reply(self.context, {"agent_id": agent_id})

    @Answers(views.wrapped({"agent_id": str, "prompt": str}))
    async def prompt(self, request: web.Request) -> web.Response:
        """Show the prompt of an agent; that of an agent of the settings is the operator's, and is not shown."""
        agent_id = request.match_info["id"]
        with agent_errors(agent_id):
            found = await self.service.get(request[OWNER], agent_id)
        return views.reply(self.context, {"agent_id": agent_id, "prompt": found.definition.system or ""})

    @Answers(views.wrapped({"total": int, "templates": ["agent.template"]}))
    async def templates(self, request: web.Request) -> web.Response:
        shown = [agents.template_body(self.context, one) for one in self.service.configured().values()]
        return views.reply(self.context, {"total": len(shown), "templates": shown})

    @Answers(
        views.wrapped({"valid": bool, "errors": [FieldProblem], "warnings": [FieldWarning]}), reads=JsonObject,
    )
    async def validate(self, request: web.Request) -> web.Response:
        """Say what is wrong with a configuration, and make nothing."""
        body = await read_json_object(request)
        try:
            fields = NewAgent.model_validate(body)
        except ValidationError as error:
            problems = [
                (field, str(describe_error(one, field, discreet=True)).removeprefix(f"{field}: "),
                 ERROR_WORDS.get(one["type"], "INVALID_FORMAT"))
                for one in error.errors(include_url=False) for field in [".".join(map(str, one["loc"]))]
            ]
        else:
            problems = [*agents.model_problems(self.service, fields), *await self._taken(request[OWNER], fields)]
        return views.reply(self.context, {
            "valid": not problems,
            "errors": [{"field": field, "message": message, "code": code} for field, message, code in problems],
            "warnings": [{"field": field, "message": message} for field, message in agents.warnings_of(body)],
        })

    @admins_only
    @Answers(views.wrapped(ReloadedAgents))
    async def reload(self, request: web.Request) -> web.Response:
        return views.reply(self.context, await self._reloaded())

    @Answers(views.wrapped(ReloadedAgents))
    async def reload_one(self, request: web.Request) -> web.Response:
        """Read the settings of an agent again; an agent that a user made is read with each session anyway."""
        agent_id = request.match_info["id"]
        with agent_errors(agent_id):
            found = await self.service.get(request[OWNER], agent_id)
        if found.configured is None:
            return views.reply(self.context, {"reloaded": [agent_id], "failed": []})
        if (caller := current_caller()) is None or not caller.is_admin:
            raise Forbidden(f"agent '{agent_id}' is set in the server's config.yaml; only admins may reload it")
        return views.reply(self.context, await self._reloaded(agent_id))

    @Answers(frames="json", messages={})
    async def progress(self, request: web.Request) -> web.StreamResponse:
        """Tell the client over a socket that the agent is ready, and close the socket: a new agent is ready at once."""
        agent_id, owner = request.match_info["id"], request[OWNER]
        try:
            found = await self.service.get(owner, agent_id)
        except NotFound:
            message = f"there is no agent '{agent_id[:128]}'"
            return await send_and_close(request, [dumps({"type": "error", "code": "NO_TASK", "message": message})])
        detail = await detail_body(self.context, owner, found)
        return await send_and_close(request, [dumps({**detail, "type": "complete", "success": True})])

    async def _taken(self, owner: str, body: NewAgent) -> list[tuple[str, str, str]]:
        if not body.agent_id:
            return []
        if not AGENT_NAME.fullmatch(body.agent_id):
            return [("agent_id", f"a name matches {AGENT_NAME.pattern}", "INVALID_FORMAT")]
        try:
            await self.service.get(owner, body.agent_id)
        except NotFound:
            return []
        return [("agent_id", f"agent '{body.agent_id}' exists already", "ALREADY_EXISTS")]

    async def _reloaded(self, *named: str) -> object:
        """Read config.yaml again, and report the outcome for these agents, or for all; a wrong file changes nothing.

        A server that was started without a file reports success, because there is nothing to read.
        """
        problem = await self.context.reloads.reload() if self.context.reloads else None
        names = named or tuple(self.context.agents)
        if problem is None:
            return {"reloaded": names, "failed": []}
        return {"reloaded": [], "failed": [{"agent_id": name, "error": problem} for name in names]}


def routes_of_agents(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = AgentRoutes(context), f"{context.mount}/agents"
    return [
        web.get(at, routes.listed),
        web.post(at, routes.create),
        web.get(f"{at}/templates", routes.templates),
        web.post(f"{at}/validate", routes.validate),
        web.post(f"{at}/reload", routes.reload),
        web.get(f"{at}/ws/create/{{id}}", routes.progress),
        web.get(f"{at}/{{id}}", routes.get),
        web.put(f"{at}/{{id}}", routes.update),
        web.delete(f"{at}/{{id}}", routes.delete),
        web.get(f"{at}/{{id}}/prompt", routes.prompt),
        web.post(f"{at}/{{id}}/reload", routes.reload_one),
    ]

