"""Environments, vaults, memory stores, files and models of the CAS reference server: made, read, changed, deleted."""

from typing import Any

from aiohttp import web

from conformance.faults.cas.front import Front, reply
from conformance.faults.cas.state import Body, mint, now
from conformance.faults.refusal import Refusal

KINDS = {
    "environments": ("env", "environment"),
    "vaults": ("vault", "vault"),
    "memory_stores": ("memstore", "memory_store"),
}
INNER = {"credentials": ("vcred", "vault_credential"), "memories": ("mem", "memory")}
NEEDED = {"environments": ("name", "config"), "vaults": ("display_name",), "memory_stores": ("name",)}
SECRETS = ("access_token", "token", "secret_value", "refresh_token", "client_secret")
WELL_KNOWN = {"metadata": {}, "description": ""}


class Resources(Front):
    """Things with an id that can be put down and taken up again."""

    def __init__(self, key: str | None = None) -> None:
        super().__init__(key)
        self.things: dict[str, dict[str, Body]] = {kind: {} for kind in (*KINDS, "files")}

    def resource_routes(self) -> list[web.RouteDef]:
        kind, inner = "/{kind:environments|vaults|memory_stores}", "/{inner:credentials|memories}"
        return [
            web.post(kind, self.post_thing),
            web.get("/{kind:environments|vaults|memory_stores|files}", self.get_things),
            web.get("/{kind:environments|vaults|memory_stores|files}/{id}", self.get_thing),
            web.post(f"{kind}/{{id}}", self.update_thing),
            web.post(f"{kind}/{{id}}/archive", self.archive_thing),
            web.delete("/{kind:environments|vaults|memory_stores|files}/{id}", self.delete_thing),
            web.post(f"{kind}/{{id}}{inner}", self.post_inner),
            web.get(f"{kind}/{{id}}{inner}", self.get_inners),
            web.get(f"{kind}/{{id}}{inner}/{{inner_id}}", self.get_inner),
            web.delete(f"{kind}/{{id}}{inner}/{{inner_id}}", self.delete_inner),
            web.post("/files", self.post_file),
            web.get("/files/{id}/content", self.get_content),
            web.get("/models", self.get_models),
        ]

    def thing(self, kind: str, name: str) -> Body:
        try:
            return self.things[kind][name]
        except KeyError:
            raise Refusal(404, f"The resource {name!r} was not found.") from None

    def create(self, kind: str, prefix: str, named: str, body: Body) -> Body:
        at = now()
        thing = {"id": mint(prefix), "type": named, **WELL_KNOWN, **body, "archived_at": None}
        thing |= {"created_at": at, "updated_at": at}
        self.things.setdefault(kind, {})[thing["id"]] = thing
        return thing

    async def post_thing(self, request: web.Request) -> web.StreamResponse:
        kind, body = request.match_info["kind"], await self.read(request)
        if missing := [name for name in NEEDED[kind] if not body.get(name)]:
            raise Refusal(400, f"{missing[0]} is required.")
        return reply(self.create(kind, *KINDS[kind], body), 201)

    async def get_things(self, request: web.Request) -> web.StreamResponse:
        things = [thing for thing in self.things[request.match_info["kind"]].values() if thing["archived_at"] is None]
        return reply(self.page(request, things[::-1]))

    async def get_thing(self, request: web.Request) -> web.StreamResponse:
        return reply(self.thing(request.match_info["kind"], request.match_info["id"]))

    async def update_thing(self, request: web.Request) -> web.StreamResponse:
        thing = self.thing(request.match_info["kind"], request.match_info["id"])
        self.update_with(thing, await self.read(request))
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
        del self.things[kind][name]
        named = "file" if kind == "files" else KINDS[kind][1]
        return reply({"id": name, "type": f"{named}_deleted"})

    # -- credentials and memories --------------------------------------------------------------------------------------

    def inner_kind(self, request: web.Request) -> str:
        self.thing(request.match_info["kind"], request.match_info["id"])
        return f"{request.match_info['id']}/{request.match_info['inner']}"

    async def post_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as, inner = self.inner_kind(request), request.match_info["inner"]
        body = self.without_secrets(await self.read(request)) if inner == "credentials" else await self.read(request)
        return reply(self.create(kept_as, *INNER[inner], body), 201)

    def without_secrets(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self.without_secrets(item) for name, item in value.items() if name not in SECRETS}
        return value

    async def get_inners(self, request: web.Request) -> web.StreamResponse:
        return reply(self.page(request, list(self.things.get(self.inner_kind(request), {}).values())))

    async def get_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as = self.inner_kind(request)
        self.things.setdefault(kept_as, {})
        return reply(self.thing(kept_as, request.match_info["inner_id"]))

    async def delete_inner(self, request: web.Request) -> web.StreamResponse:
        kept_as, name = self.inner_kind(request), request.match_info["inner_id"]
        self.things.setdefault(kept_as, {})
        self.thing(kept_as, name)
        del self.things[kept_as][name]
        return reply({"id": name, "type": f"{INNER[request.match_info['inner']][1]}_deleted"})

    # -- files and models ----------------------------------------------------------------------------------------------

    async def post_file(self, request: web.Request) -> web.StreamResponse:
        if request.content_type != "multipart/form-data":
            raise Refusal(400, "A file is sent as multipart/form-data.")
        field = (await request.post()).get("file")
        if not isinstance(field, web.FileField):
            raise Refusal(400, "file is required.")
        size = len(field.file.read())
        told = {"filename": field.filename, "size": size, "content_type": field.content_type, "status": "ready"}
        return reply(self.create("files", "file", "file", told), 201)

    async def get_content(self, request: web.Request) -> web.StreamResponse:
        self.thing("files", request.match_info["id"])
        return reply({"url": "https://files.example.com/content", "expires_at": now()})

    async def get_models(self, request: web.Request) -> web.StreamResponse:
        return reply({"data": self.models(), "has_more": False})

    def models(self) -> list[Body]:
        return [{"id": "reference", "type": "model", "display_name": "Reference", "is_enabled": True}]
