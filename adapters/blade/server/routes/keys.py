"""Blade's API keys, which are the gateway's own: a key that is made here works in every dialect."""

from aiohttp import web

from adapters.blade.server import views
from adapters.blade.wire import BladeSettings, KeyName
from gateway.http import CALLER, OWNER, Answers, Context, Row, json_response, read_json
from gateway.ports import KeyRing

KEY_PREFIX = "sk-blade-v2-"


def key_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    assert context.keys is not None, "a gateway has keys, whether it asks for them or not"
    keys, at = KeyRoutes(context, context.keys), f"{context.mount}/user/api-keys"
    return [
        *(web.post(path, keys.create) for path in (at, f"{at}/")),
        *(web.get(path, keys.listed) for path in (at, f"{at}/")),
        web.get(f"{at}/{{id}}", keys.get),
        web.patch(f"{at}/{{id}}", keys.rename),
        web.delete(f"{at}/{{id}}", keys.delete),
    ]


class KeyRoutes:
    """The routes of keys, one method each."""

    def __init__(self, context: Context[BladeSettings], keys: KeyRing) -> None:
        self.context = context
        self.keys = keys

    @Answers(Row("key.created", key="key"), status=201, reads=KeyName)
    async def create(self, request: web.Request) -> web.Response:
        name = (await read_json(request, KeyName)).name
        made, token = await self.keys.issue(request[CALLER], name, KEY_PREFIX)
        return json_response(views.created_key_body(self.context.table, made, token), 201)

    @Answers(["key"])
    async def listed(self, request: web.Request) -> web.Response:
        found = await self.keys.of(request[OWNER])
        return json_response([views.key_body(self.context.table, key) for key in found])

    @Answers("key")
    async def get(self, request: web.Request) -> web.Response:
        found = await self.keys.find(request[OWNER], request.match_info["id"])
        return json_response(views.key_body(self.context.table, found))

    @Answers("key", reads=KeyName)
    async def rename(self, request: web.Request) -> web.Response:
        name = (await read_json(request, KeyName)).name
        found = await self.keys.relabel(request[CALLER], request.match_info["id"], name)
        return json_response(views.key_body(self.context.table, found))

    @Answers(status=204)
    async def delete(self, request: web.Request) -> web.Response:
        await self.keys.revoke(request[CALLER], request.match_info["id"])
        return web.Response(status=204)
