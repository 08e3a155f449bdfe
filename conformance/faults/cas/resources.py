"""Environments, vaults, memory stores, files and models of the CAS reference server: made, read, changed, deleted."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import Front, reply
from conformance.faults.cas.state import KINDS, Body, State, mint, now
from conformance.faults.refusal import Refusal

INNER = {"credentials": ("vcred", "vault_credential"), "memories": ("mem", "memory")}
NEEDED = {"environments": ("name", "config"), "vaults": ("display_name",), "memory_stores": ("name",)}
SECRETS = ("access_token", "token", "secret_value", "refresh_token", "client_secret")
WELL_KNOWN = {"metadata": {}, "description": ""}


class Resources:
    """Creates, shows, lists, changes, archives and deletes resources."""

    def __init__(self, state: State, front: Front) -> None:
        self.state = state
        self.front = front

    def thing(self, kind: str, name: str) -> Body:
        try:
            return self.state.things[kind][name]
        except KeyError:
            raise Refusal(404, f"The resource {name!r} was not found.") from None

    def create(self, kind: str, prefix: str, named: str, body: Body) -> Body:
        at = now()
        thing = {"id": mint(prefix), "type": named, **WELL_KNOWN, **body, "archived_at": None}
        thing |= {"created_at": at, "updated_at": at}
        self.state.things.setdefault(kind, {})[thing["id"]] = thing
        return thing

    async def post_thing(self, request: web.Request) -> web.StreamResponse:
        kind, body = request.match_info["kind"], await self.front.read(request)
        if missing := [name for name in NEEDED[kind] if not body.get(name)]:
            raise Refusal(400, f"{missing[0]} is required.")
        return reply(self.create(kind, *KINDS[kind], body), 201)

    async def get_things(self, request: web.Request) -> web.StreamResponse:
        things = self.state.things[request.match_info["kind"]].values()
        return reply(self.front.page(request, [thing for thing in things if thing["archived_at"] is None][::-1]))

    async def get_thing(self, request: web.Request) -> web.StreamResponse:
        return reply(self.thing(request.match_info["kind"], request.match_info["id"]))

    async def update_thing(self, request: web.Request) -> web.StreamResponse:
        thing = self.thing(request.match_info["kind"], request.match_info["id"])
        self.update_with(thing, await self.front.read(request))
        return reply(thing)

    def update_with(self, thing: Body, body: Body) -> None:
        thing |= body | {"updated_at": now()}

    async def archive_thing(self, request: web.Request) -> web.StreamResponse:
        thing = self.thing(request.match_info["kind"], request.match_info["id"])
        thing["archived_at"] = now()
        return reply(thing)

    async def delete_thing(self, request: web.Request) -> web.StreamResponse:
        kind, name = request.match_info["kind"], request.match_info["id"]
        self.thing(kind, name)
        del self.state.things[kind][name]
        named = "file" if kind == "files" else KINDS[kind][1]
        return reply({"id": name, "type": f"{named}_deleted"})

    def inner_kind(self, request: web.Request) -> str:
        self.thing(request.match_info["kind"], request.match_info["id"])
        return f"{request.match_info['id']}/{request.match_info['inner']}"

    async def post_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as, inner = self.inner_kind(request), request.match_info["inner"]
        body = await self.front.read(request)
        kept = self.without_secrets(body) if inner == "credentials" else body
        return reply(self.create(kept_as, *INNER[inner], kept), 201)

    def without_secrets(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.without_secrets(item) for name, item in value.items() if name not in SECRETS}
        return value

    async def get_inners(self, request: web.Request) -> web.StreamResponse:
        return reply(self.front.page(request, list(self.state.things.get(self.inner_kind(request), {}).values())))

    async def get_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as = self.inner_kind(request)
        self.state.things.setdefault(kept_as, {})
        return reply(self.thing(kept_as, request.match_info["inner_id"]))

    async def delete_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as, name = self.inner_kind(request), request.match_info["inner_id"]
        self.state.things.setdefault(kept_as, {})
        self.thing(kept_as, name)
        del self.state.things[kept_as][name]
        return reply({"id": name, "type": f"{INNER[request.match_info['inner']][1]}_deleted"})

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "A file is sent as multipart/form-data.")
        field = (await request.post()).get("file")
        if not isinstance(field, web.FileField):
            raise Refusal(400, "file is required.")
        size = len(field.file.read())
        members = {"filename": field.filename, "size": size, "content_type": field.content_type, "status": "ready"}
        return reply(self.create("files", "file", "file", members), 201)

    async def get_content(self, request: web.Request) -> web.StreamResponse:
        self.thing("files", request.match_info["id"])
        return reply({"url": "https://files.example.com/content", "expires_at": now()})

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        return reply({"data": self.models(), "has_more": False})

    def models(self) -> list[Body]:
        return [{"id": "reference", "type": "model", "display_name": "Reference", "is_enabled": True}]
