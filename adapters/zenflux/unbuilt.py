"""What is documented and not served here: sections 3.5 to 3.7, 3.9 to 3.12 and 4; all of it answers 501."""

from collections.abc import Iterator

from aiohttp import web

from gateway.web import Context, reply

NOT_IMPLEMENTED = 501
UNBUILT = {
    "/agents": "GET POST",
    "/agents/templates": "GET",
    "/agents/validate": "POST",
    "/agents/reload": "POST",
    "/agents/{id}": "GET PUT DELETE",
    "/agents/{id}/reload": "POST",
    "/agents/{id}/prompt": "GET",
    "/agents/{id}/mcp": "GET",
    "/agents/{id}/mcp/available": "GET",
    "/agents/{id}/mcp/{name}": "POST PUT DELETE",
    "/skills/global": "GET",
    "/skills/instance/{agent_id}": "GET",
    "/skills/install": "POST",
    "/skills/uninstall": "POST",
    "/skills/toggle": "POST",
    "/skills/update_content": "POST",
    "/skills/detail/{name}": "GET",
    "/skills/file/{name}/{type}/{file}": "GET",
    "/skills/upload": "POST",
    "/tools": "GET",
    "/tools/schemas": "GET",
    "/tools/register": "POST",
    "/tools/execute": "POST",
    "/tools/mcp/register": "POST",
    "/tools/mcp": "GET",
    "/tools/mcp/{name}": "GET PUT DELETE",
    "/tools/{name}": "GET DELETE",
    "/tools/{name}/invoke": "POST",
    "/settings": "GET PUT",
    "/settings/status": "GET",
    "/settings/schema": "GET",
    "/mem0/search": "POST",
    "/mem0/user/{user_id}": "GET DELETE",
    "/mem0/add": "POST",
    "/mem0/batch-update": "POST",
    "/mem0/memory/{id}": "DELETE",
    "/tasks": "GET",
    "/tasks/scheduled/config": "GET",
    "/tasks/scheduled/status": "GET",
    "/tasks/{name}": "GET",
    "/tasks/{name}/run": "POST",
    "/tasks/{name}/batch": "POST",
    "/docs/structure": "GET",
    "/docs/content/{path:.+}": "GET",
    "/realtime/ws": "GET",
    "/realtime/ws/{id}": "GET",
    "/realtime/sessions": "GET",
    "/realtime/sessions/{id}": "DELETE",
}
"""Methods by path, in an order in which no path hides another."""


NO_AGENTS = ("/agents/default-data-path",)
"""What the later front end asks for, and could be taken for the name of an agent."""


def unbuilt(context: Context) -> Iterator[web.RouteDef]:
    async def miss(request: web.Request) -> web.Response:
        raise web.HTTPNotFound

    async def refuse(request: web.Request) -> web.Response:
        message = f"{request.method} {request.path} is not served by this gateway"
        return reply(context.table.object("refusal", code=NOT_IMPLEMENTED, message=message), NOT_IMPLEMENTED)

    for path in NO_AGENTS:
        yield web.get(f"{context.mount}{path}", miss)
    for path, methods in UNBUILT.items():
        for method in methods.split():
            yield web.route(method, f"{context.mount}{path}", refuse)
