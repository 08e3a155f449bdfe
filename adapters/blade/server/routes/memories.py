"""Blade's memories: make, search, change and delete one or many."""

from typing import Any

from aiohttp import web

from adapters.blade.server import views
from adapters.blade.wire import (
    MEMORY_FIELDS,
    BladeSettings,
    MemoryBatch,
    MemoryChange,
    MemoryFields,
    MemoryQuery,
    MemorySwitch,
    NewMemory,
)
from gateway.errors import NotFound
from gateway.http import OWNER, Answers, Context, Row, json_response, parse_whole_number, read_json, validate
from gateway.resources import Memories, Memory, MemoryFilter

FILTERS = ("skill_name", "type", "record_type", "scope", "owner", "topic")


def memory_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    memories, at = MemoryRoutes(context), f"{context.mount}/memories"
    return [
        web.post(at, memories.create),
        web.get(at, memories.listed),
        web.post(f"{at}/batch", memories.batch),
        web.get(f"{at}/{{id}}", memories.get),
        web.put(f"{at}/{{id}}", memories.change),
        web.patch(f"{at}/{{id}}", memories.switch),
        web.delete(f"{at}/{{id}}", memories.delete),
    ]


class MemoryRoutes:
    """The routes of memories, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context
        self.memories = Memories(context.resources)

    @Answers("memory", status=201, reads=NewMemory)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, NewMemory)
        kept = await self.memories.add(request[OWNER], Memory(**_memory_fields(body)))
        return json_response(views.memory_body(self.context.table, kept), 201)

    @Answers(Row("memories", items=["memory"]), query=MemoryQuery)
    async def listed(self, request: web.Request) -> web.Response:
        query = validate(MemoryQuery, dict(request.query))
        given = {name: getattr(query, name) for name in FILTERS}
        wanted = {MEMORY_FIELDS.get(name, name): value for name, value in given.items() if value is not None}
        if query.status != "all":
            wanted["disabled"] = query.status == "disabled"
        page, total = await self.memories.search(
            request[OWNER], MemoryFilter(**wanted), query.keyword, offset=query.offset, limit=query.limit,
        )
        return json_response(views.memories_body(self.context.table, page, total))

    @Answers("memory")
    async def get(self, request: web.Request) -> web.Response:
        return json_response(
            views.memory_body(self.context.table, await self.memories.find(request[OWNER], _memory_number(request)))
        )

    @Answers("memory", reads=MemoryChange)
    async def change(self, request: web.Request) -> web.Response:
        body = await read_json(request, MemoryChange)
        changed = await self.memories.change(request[OWNER], _memory_number(request), **_memory_fields(body))
        return json_response(views.memory_body(self.context.table, changed))

    @Answers("memory", reads=MemorySwitch)
    async def switch(self, request: web.Request) -> web.Response:
        body = await read_json(request, MemorySwitch)
        changed = await self.memories.change(request[OWNER], _memory_number(request), disabled=body.disabled)
        return json_response(views.memory_body(self.context.table, changed))

    @Answers("ok")
    async def delete(self, request: web.Request) -> web.Response:
        await self.memories.remove(request[OWNER], _memory_number(request))
        return json_response(self.context.table.object("ok"))

    @Answers("ok.count", reads=MemoryBatch)
    async def batch(self, request: web.Request) -> web.Response:
        body, owner = await read_json(request, MemoryBatch), request[OWNER]
        if body.action == "delete":
            count = await self.memories.remove_all(owner, body.ids)
        else:
            count = await self.memories.change_all(owner, body.ids, disabled=body.action == "disable")
        return json_response(self.context.table.object("ok.count", count=count))


def _memory_fields(fields: MemoryFields) -> dict[str, Any]:
    """The fields that a client sent, under our names; null is absent."""
    return {MEMORY_FIELDS.get(name, name): value for name, value in fields.model_dump(exclude_none=True).items()}


def _memory_number(request: web.Request) -> int:
    value = request.match_info["id"]
    number = parse_whole_number(value, 15)
    if number is None:
        raise NotFound(f"there is no memory '{value}'")
    return number
