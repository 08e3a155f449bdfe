"""Tools of the ZenFlux reference server: those that it came with, and those that clients register."""

import re
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import web

from conformance.faults.zenflux.front import Front, Kind
from conformance.faults.zenflux.state import Body, Refusal, State, object_time
from conformance.kit.schemas import is_schema

NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
RESERVED = ("schemas", "register", "execute", "mcp")
LARGEST_PAGE = 100
WORDS = {"tool_type": ("user_defined", "mcp"), "status": ("available", "unavailable", "disabled", "rate_limited")}
FIELDS: dict[str, Kind] = {
    "name": str,
    "description": str,
    "input_schema": dict,
    "tool_type": str,
    "mcp_config": dict,
    "implementation": dict,
    "keywords": list,
    "category": str,
    "return_mode": str,
}
ORDER: dict[str, Kind] = {"tool_name": str, "input": dict, "stream": bool, "timeout": int}
NOTHING: Body = {"type": "object", "properties": {}, "required": []}
PLACE: Body = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def _definition(name: str, description: str, schema: Body, **more: Any) -> Body:
    usual: Body = {"tool_type": "user_defined", "return_mode": "direct", "output_schema": None, "mcp_config": None}
    usual |= {"implementation": None, "keywords": [], "examples": [], "category": None, "rate_limit": None}
    usual |= {"requires_confirmation": False, "timeout": 30, "status": "available"}
    return {"name": name, "description": description, "input_schema": schema, **usual, **more}


BUILT_IN = {
    "clock": _definition("clock", "The time of day, in UTC.", NOTHING, category="time"),
    "weather": _definition("weather", "The weather at a place.", PLACE, keywords=["rain", "sun"]),
    "wipe": _definition("wipe", "Clears the disk.", NOTHING, status="disabled"),
}


class Tools:
    """Answers requests below /tools, except for those about MCP servers."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    def tool_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/tools", self.get_tools),
            web.post("/tools/register", self.post_tool),
            web.post("/tools/execute", self.post_execute),
            web.get("/tools/schemas", self.get_schemas),
            web.get("/tools/{name}", self.get_tool),
            web.delete("/tools/{name}", self.delete_tool),
            web.post("/tools/{name}/invoke", self.post_invoke),
        ]

    # -- what there is -------------------------------------------------------------------------------------------------

    def all_tools(self) -> dict[str, Body]:
        return {**BUILT_IN, **self.state.tools}

    def tool(self, name: str) -> Body:
        try:
            return self.all_tools()[name]
        except KeyError:
            raise Refusal(404, "TOOL_NOT_FOUND", "There is no such tool.") from None

    def fits(self, tool: Body, name: str, wanted: str) -> bool:
        """Whether a tool is one of those that a filter asks for."""
        if name != "keyword":
            return bool(tool[name] == wanted)
        texts = (tool["name"], tool["description"], *tool["keywords"])
        return any(self.has_word(text, wanted) for text in texts)

    def has_word(self, text: str, wanted: str) -> bool:
        return wanted.lower() in text.lower()

    def found_tools(self, query: Any) -> list[Body]:
        """The tools that all filters ask for."""
        filters = {name: query[name] for name in ("tool_type", "category", "status", "keyword") if name in query}
        for name, words in WORDS.items():
            if name in filters and filters[name] not in words:
                raise Refusal(400, "VALIDATION_ERROR", f"There is no {name} of this name.")
        tools = self.all_tools().values()
        return [tool for tool in tools if all(self.fits(tool, name, wanted) for name, wanted in filters.items())]

    def bound(self, query: Any, name: str, usual: int, most: int | None) -> int:
        given = query.get(name, str(usual))
        if not given.isdigit() or int(given) < 1 or (most and int(given) > most):
            raise Refusal(400, "VALIDATION_ERROR", f"{name} is out of bounds.")
        return int(given)

    def page_of(self, tools: list[Body], page: int, size: int) -> list[Body]:
        return tools[(page - 1) * size : page * size]

    def counted(self, tool: Body) -> Body:
        """What is told of one tool."""
        statistics = {"total_invocations": 0, "success_count": 0, "failure_count": 0, "success_rate": "0.0%"}
        return {**tool, "definition": tool, "statistics": statistics, "recent_invocations": None}

    # -- changes -------------------------------------------------------------------------------------------------------

    def check_definition(self, about: Body) -> None:
        for name in ("name", "description", "input_schema"):
            if not about.get(name):
                raise Refusal(400, "VALIDATION_ERROR", f"{name} is required.")
        if not NAME.fullmatch(about["name"]) or about["name"] in RESERVED:
            raise Refusal(400, "VALIDATION_ERROR", "A tool cannot have this name.")
        if not is_schema(about["input_schema"]):
            raise Refusal(400, "VALIDATION_ERROR", "input_schema is no schema.")
        if about.get("tool_type") == "mcp" and not about.get("mcp_config"):
            raise Refusal(400, "VALIDATION_ERROR", "mcp_config is required.")

    def check_implementation(self, about: Body) -> None:
        if about.get("implementation"):
            raise Refusal(403, "FORBIDDEN", "Code of clients is not run.")

    def check_taken(self, name: str, replaces: bool) -> None:
        if name in BUILT_IN:
            raise Refusal(403 if replaces else 409, "FORBIDDEN" if replaces else "ALREADY_EXISTS", "It is built in.")
        if name in self.state.tools and not replaces:
            raise Refusal(409, "ALREADY_EXISTS", "There is a tool of this name.")

    def register_tool(self, body: Body) -> Body:
        about = self.front.fields(self.defined(body), FIELDS)
        self.check_definition(about)
        self.check_implementation(about)
        replaces = self.front.fields(body, {"replace_existing": bool}).get("replace_existing", False)
        self.check_taken(about["name"], replaces)
        rest = {name: value for name, value in about.items() if name not in ("name", "description", "input_schema")}
        tool = _definition(about["name"], about["description"], about["input_schema"], **rest)
        self.keep_tool(tool)
        return {"tool_name": tool["name"], "tool_definition": tool}

    def defined(self, body: Body) -> Body:
        """The definition in a body, or the body that is one."""
        return dict(self.front.fields(body, {"definition": dict}).get("definition", body))

    def keep_tool(self, tool: Body) -> None:
        self.state.tools[tool["name"]] = tool

    def own_tool(self, name: str) -> Body:
        tool = self.tool(name)
        if name in BUILT_IN:
            raise Refusal(403, "FORBIDDEN", "This tool is part of the server.")
        return tool

    def remove_tool(self, tool: Body) -> None:
        self.state.tools.pop(tool["name"], None)

    # -- carrying out --------------------------------------------------------------------------------------------------

    def check_input(self, tool: Body, given: Body) -> None:
        missing = [name for name in tool["input_schema"].get("required", []) if name not in given]
        if missing:
            raise Refusal(400, "VALIDATION_ERROR", f"{missing[0]} is required.")

    def check_runnable(self, tool: Body) -> None:
        if tool["name"] not in BUILT_IN:
            raise Refusal(400, "VALIDATION_ERROR", "Only the client can carry it out.")
        if tool["status"] != "available":
            raise Refusal(403, "FORBIDDEN", "This tool is not for everybody.")

    def output(self, tool: Body, given: Body) -> str:
        return object_time() if tool["name"] == "clock" else f"It rains at {given['place']}."

    def outcome(self, tool: Body, given: Body) -> Body:
        self.check_runnable(tool)
        self.check_input(tool, given)
        now = object_time()
        told: Body = {"invocation_id": f"inv_{uuid4().hex[:12]}", "tool_name": tool["name"], "status": "success"}
        told |= {"output": self.output(tool, given), "error": None, "error_code": None, "duration_ms": 0}
        return told | {"started_at": now, "completed_at": now, "usage": None, "metadata": {}}

    def chunks(self, outcome: Body) -> list[Body]:
        """The outcome as it is streamed."""
        parts = [("data", outcome["output"]), ("done", {"total_chunks": 1})]
        about = {"invocation_id": outcome["invocation_id"], "timestamp": outcome["completed_at"]}
        return [
            {**about, "chunk_index": place, "chunk_type": kind, "content": content}
            for place, (kind, content) in enumerate(parts)
        ]

    async def answer_of_run(self, request: web.Request, outcome: Body, is_streamed: bool) -> web.StreamResponse:
        if not is_streamed:
            return self.front.reply(outcome)
        headers = {"Content-Type": "text/event-stream", "X-Invocation-Id": outcome["invocation_id"]}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for chunk in self.chunks(outcome):
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")
        await response.write_eof()
        return response

    # -- requests ------------------------------------------------------------------------------------------------------

    async def get_tools(self, request: web.Request) -> web.StreamResponse:
        page = self.bound(request.query, "page", 1, None)
        size = self.bound(request.query, "page_size", 20, LARGEST_PAGE)
        found = self.found_tools(request.query)
        told = {"tools": self.page_of(found, page, size), "total": len(found), "page": page, "page_size": size}
        return self.front.reply(told)

    async def get_tool(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.counted(self.tool(request.match_info["name"])))

    async def post_tool(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.register_tool(await self.front.read(request)))

    async def delete_tool(self, request: web.Request) -> web.StreamResponse:
        tool = self.own_tool(request.match_info["name"])
        self.remove_tool(tool)
        return self.front.reply({"tool_name": tool["name"]})

    async def post_execute(self, request: web.Request) -> web.StreamResponse:
        order = self.front.fields(await self.front.read(request), ORDER)
        if not order.get("tool_name"):
            raise Refusal(400, "VALIDATION_ERROR", "tool_name is required.")
        outcome = self.outcome(self.tool(order["tool_name"]), order.get("input", {}))
        return await self.answer_of_run(request, outcome, order.get("stream", False))

    async def post_invoke(self, request: web.Request) -> web.StreamResponse:
        given = await self.front.read(request) if request.can_read_body else {}
        outcome = self.outcome(self.tool(request.match_info["name"]), given)
        return await self.answer_of_run(request, outcome, self.front.flag(request, "stream"))

    async def get_schemas(self, request: web.Request) -> web.StreamResponse:
        names = request.query.get("tool_names")
        tools = [tool for tool in self.all_tools().values() if tool["status"] == "available"]
        asked = [tool for tool in tools if names is None or tool["name"] in names.split(",")]
        return self.front.reply({"tools": [self.schema_of(tool) for tool in asked], "total": len(asked)})

    def schema_of(self, tool: Body) -> Body:
        return {name: tool[name] for name in ("name", "description", "input_schema")}
