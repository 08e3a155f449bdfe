"""Tools over HTTP: a paged list, schemas for models, one's own definitions, and runs outside of a conversation."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from aiohttp import web

from adapters.zenflux.bodies import ToolBody, ToolChunkBody, ToolRunBody, ToolSchemaBody, spell
from adapters.zenflux.server import views
from adapters.zenflux.server.agents import tool_service
from adapters.zenflux.wire import (
    DIALECT_NAME,
    ToolDefinitionBody,
    ToolExecution,
    ToolRegistration,
    ZenfluxSettings,
    bool_param,
    choice_param,
    whole_number_param,
)
from gateway.errors import Forbidden, Invalid
from gateway.http import OWNER, Answers, Context, dumps, read_json, read_json_object, stream_sse, validate
from gateway.ids import random_id
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Chunk, Frame
from gateway.resources import MAX_TOOL_SECONDS, Invocation, KnownTool, ToolDefinition

RESERVED_NAMES = frozenset(("schemas", "register", "execute", "mcp"))
"""Names that are paths; they cannot be the names of tools."""
KEPT_FIELDS = ("return_mode", "output_schema", "keywords", "examples", "category")
"""Fields that only ZenFlux has: they are kept and given back."""
ANY_SCHEMA: JsonObject = {"type": "object", "properties": {}, "required": []}
MAX_PAGE = 10**9


class ToolRoutes:
    """The routes of tools, one method each."""

    def __init__(self, context: Context[ZenfluxSettings]) -> None:
        self.context = context
        self.service = tool_service(context)

    # -- finding --------------------------------------------------------------------------------------------------

    @Answers(
        views.wrapped({"tools": ["tool"], "total": int, "page": int, "page_size": int}), query={
            "page": int, "page_size": int, "tool_type": str, "status": str, "category": str, "keyword": str,
        },
    )
    async def listed(self, request: web.Request) -> web.Response:
        page = whole_number_param(request, "page", 1, 1, MAX_PAGE)
        size = whole_number_param(request, "page_size", 20, 1, 100)
        wanted = {
            "tool_type": choice_param(request, "tool_type", "", "user_defined", "mcp"),
            "status": choice_param(request, "status", "", "available", "unavailable", "disabled", "rate_limited"),
            "category": request.query.get("category", ""),
        }
        keyword = request.query.get("keyword", "").casefold()
        shown = [self._shown(one) for one in await self.service.all(request[OWNER])]
        found = [
            one for one in shown
            if all(not value or one[word] == value for word, value in wanted.items()) and _mentions(one, keyword)
        ]
        return views.reply(self.context, {
            "tools": found[(page - 1) * size:page * size], "total": len(found), "page": page, "page_size": size})

    @Answers(views.wrapped({"tools": ["tool.schema"], "total": int}), query={"tool_names": str})
    async def schemas(self, request: web.Request) -> web.Response:
        """The tools as Claude's API takes them."""
        names = {name.strip() for name in request.query.get("tool_names", "").split(",") if name.strip()}
        shown: list[Any] = [
            spell(self.context.table, ToolSchemaBody(
                name=one.spec.name, description=one.spec.description,
                parameters=one.spec.parameters or ANY_SCHEMA))
            for one in await self.service.all(request[OWNER])
            if _status(one) == "available" and (not names or one.spec.name in names)
        ]
        return views.reply(self.context, {"tools": shown, "total": len(shown)})

    @Answers(
        views.wrapped({
            "...": "tool", "definition": "tool", "recent_invocations": None, "statistics": {
                "total_invocations": int, "success_count": int, "failure_count": int, "success_rate": str,
            },
        }),
    )
    async def get(self, request: web.Request) -> web.Response:
        found = await self.service.get(request[OWNER], request.match_info["name"])
        shown, counts = self._shown(found), self.service.count(request[OWNER], found.spec.name)
        total = counts.succeeded + counts.failed
        return views.reply(self.context, {
            **shown, "definition": shown, "recent_invocations": None, "statistics": {
                "total_invocations": total, "success_count": counts.succeeded, "failure_count": counts.failed,
                "success_rate": f"{100 * counts.succeeded / (total or 1):.1f}%",
            }})

    # -- changing -------------------------------------------------------------------------------------------------

    @Answers(views.wrapped({"tool_name": str, "tool_definition": "tool"}), reads=(ToolRegistration, ToolDefinitionBody))
    async def register(self, request: web.Request) -> web.Response:
        """Store a definition; code that a client names is never loaded."""
        body = await read_json_object(request)
        fields = validate(ToolRegistration, body if "definition" in body else {**body, "definition": body}, "")
        definition = fields.definition
        if definition.name in RESERVED_NAMES:
            raise Invalid(f"name: '{definition.name}' is the name of a path; choose another", param="name")
        if definition.tool_type == "mcp" and definition.mcp_config is None:
            raise Invalid("mcp_config: is required for a tool of the type mcp", param="mcp_config")
        if definition.implementation:
            raise Forbidden("implementation: a client's code is never run here; leave it out")
        made = await self.service.register(
            request[OWNER], definition.name, _definition(definition, enabled=fields.enabled),
            replace_existing=fields.replace_existing)
        return views.reply(self.context, {"tool_name": made.spec.name, "tool_definition": self._shown(made)})

    @Answers(views.wrapped({"tool_name": str}))
    async def delete(self, request: web.Request) -> web.Response:
        await self.service.delete(request[OWNER], request.match_info["name"])
        return views.reply(self.context, {"tool_name": request.match_info["name"]})

    # -- running --------------------------------------------------------------------------------------------------

    @Answers(views.wrapped("tool.run"), reads=ToolExecution, stream_rows=("tool.chunk",))
    async def execute(self, request: web.Request) -> web.StreamResponse:
        return await self._run(request, await read_json(request, ToolExecution))

    @Answers(
        views.wrapped("tool.run"),
        reads=JsonObject, may_be_empty=True, query={"stream": bool}, stream_rows=("tool.chunk",),
    )
    async def invoke(self, request: web.Request) -> web.StreamResponse:
        """Run a tool with the body of the request as its input."""
        stream = bool_param(request, "stream", default=False)
        input = await read_json_object(request) if request.can_read_body else {}
        return await self._run(request, ToolExecution(
            tool_name=request.match_info["name"], input=input, stream=stream))

    async def _run(self, request: web.Request, body: ToolExecution) -> web.StreamResponse:
        owner, seconds = request[OWNER], float(MAX_TOOL_SECONDS if body.timeout is None else body.timeout)
        tool = await self.service.check_runnable(owner, body.tool_name, body.input)
        with self.service.reserve_run(owner):
            if not body.stream:
                return views.reply(self.context, self._outcome(
                    await self.service.run(owner, tool, body.input, seconds)))
            chunks = ToolChunks(self.context, random_id("inv"))
            running = asyncio.create_task(self._feed(chunks, owner, tool, body.input, seconds))
            try:
                return await stream_sse(
                    request, chunks, heartbeat=self.context.heartbeat, patience=self.context.send_timeout,
                    until_end=True, hello=b"", headers={"X-Invocation-Id": chunks.invocation_id})
            finally:
                running.cancel()
                await asyncio.wait((running,))

    async def _feed(
        self, chunks: "ToolChunks", owner: str, tool: KnownTool, input: JsonObject, seconds: float,
    ) -> None:
        """Run a tool: its log lines, its result or error, and its end become chunks."""
        try:
            done = await self.service.run(
                owner, tool, input, seconds, invocation_id=chunks.invocation_id, out=partial(chunks.add, "log"))
            chunks.add(*(("data", done.output) if done.error is None else ("error", done.error)))
        finally:
            chunks.end()

    # -- what clients see -----------------------------------------------------------------------------------------

    def _shown(self, tool: KnownTool) -> Any:
        """A definition; the implementation of a tool is the server's, and is not shown."""
        registered = tool.registered
        own = registered.extra.get(DIALECT_NAME, {}) if registered else {}
        server = tool.server
        return spell(self.context.table, ToolBody(
            name=tool.spec.name, description=tool.spec.description,
            type="user_defined" if server is None else "mcp", return_mode=own.get("return_mode", "direct"),
            input_schema=tool.spec.parameters or ANY_SCHEMA, output_schema=own.get("output_schema"),
            mcp_config=None if server is None else {"server_name": server},
            keywords=own.get("keywords") or [], examples=own.get("examples") or [], category=own.get("category"),
            asks=tool.permission.value == "ask", status=_status(tool),
            agents=list(tool.agents),
        ))

    def _outcome(self, done: Invocation) -> JsonValue:
        code = None if done.error is None else "TIMEOUT" if done.timed_out else "EXECUTION_ERROR"
        status = "success" if done.error is None else "timeout" if done.timed_out else "failed"
        return spell(self.context.table, ToolRunBody(
            id=done.invocation_id, name=done.tool, status=status, output=done.output, error=done.error,
            error_code=code, started_at=done.started_at, ended_at=done.ended_at,
            milliseconds=round(1000 * (done.ended_at - done.started_at)),
        ))


class ToolChunks:
    """The chunks of one run, as a subscription: they are sent as they come."""

    cut_at, is_draining = None, False

    def __init__(self, context: Context[ZenfluxSettings], invocation_id: str) -> None:
        self.context = context
        self.invocation_id = invocation_id
        self._count = 0
        self._waiting: asyncio.Queue[Chunk] = asyncio.Queue()

    def add(self, kind: str, content: JsonValue) -> None:
        self._put(kind, content, ends=False)

    def end(self) -> None:
        self._put("done", {"total_chunks": self._count}, ends=True)

    async def chunks(self) -> Sequence[Chunk]:
        return [await self._waiting.get()]

    def cut(self) -> None:
        """Nothing is left to do: the run ends with its stream."""

    def close(self) -> None:
        """Nothing is left to do: the run ends with its stream."""

    def _put(self, kind: str, content: JsonValue, *, ends: bool) -> None:
        body = spell(self.context.table, ToolChunkBody(
            id=self.invocation_id, number=self._count, kind=kind, content=content, at=self.context.clock()))
        self._waiting.put_nowait(Chunk(
            seq=self._count, frames=(Frame(b"data: " + dumps(body) + b"\n\n"),), yields=ends, ends=ends))
        self._count += 1


def _status(tool: KnownTool) -> str:
    if not tool.is_enabled:
        return "disabled"
    return "available" if tool.is_available else "unavailable"


def _mentions(shown: Any, keyword: str) -> bool:
    texts = (shown["name"], shown["description"], *shown["keywords"])
    return any(keyword in text.casefold() for text in texts)


def _definition(body: ToolDefinitionBody, *, enabled: bool) -> ToolDefinition:
    own = {word: value for word in KEPT_FIELDS if (value := getattr(body, word)) is not None}
    return ToolDefinition(
        description=body.description, parameters=body.input_schema, enabled=enabled, extra={DIALECT_NAME: own},
        server=body.mcp_config.server_name if body.mcp_config else None,
    )


def routes_of_tools(context: Context[ZenfluxSettings]) -> list[web.RouteDef]:
    routes, at = ToolRoutes(context), f"{context.mount}/tools"
    return [
        web.get(at, routes.listed),
        web.get(f"{at}/schemas", routes.schemas),
        web.post(f"{at}/register", routes.register),
        web.post(f"{at}/execute", routes.execute),
        web.get(f"{at}/{{name}}", routes.get),
        web.delete(f"{at}/{{name}}", routes.delete),
        web.post(f"{at}/{{name}}/invoke", routes.invoke),
    ]
