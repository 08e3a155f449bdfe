"""CAS's files: uploaded as forms, kept by the house, fetched by signed links."""

from collections.abc import Sequence
from typing import Any

import orjson
from aiohttp import web

from gateway.errors import GatewayError, Invalid
from gateway.model import LimitExceeded, read_json
from gateway.ports import Resource
from gateway.web import OWNER, Form, address, attachment, checked, clean_name, receive, reply

from . import catalog_views as views
from .catalog_shelf import Shelf
from .catalog_wire import FileFields

BYTES = ("application/binary", "application/octet-stream")
"""What a client that wants the bytes themselves, and no link to them, accepts."""


class FileShelf(Shelf):
    kind, noun, prefix = "file", "File", "file"

    async def create(self, request: web.Request) -> web.Response:
        form, stored = await receive(request, self.house.files)
        try:
            said = _fields(form)
            body = {
                "name": clean_name(said.name) if said.name else form.name, "media_type": form.media_type,
                "size": stored.size, "sha256": stored.sha256, "metadata": said.metadata or {},
            }
            made = await self.house.resources.create(self.kind, request[OWNER], body, resource_id=stored.file_id)
        except GatewayError:
            await self.house.files.remove(stored.file_id)
            raise
        return reply(await self.shown(request, made), 201)

    async def content(self, request: web.Request) -> web.StreamResponse:
        """A link, for whoever holds it and for a while; or the bytes, for a client that says so."""
        found = await self.found(request)
        name, media_type = found.body["name"], found.body["media_type"]
        if request.headers.get("Accept") in BYTES:
            return attachment(self.house.files.path(found.resource_id), name, media_type)
        word, expires = self.house.files.link(found.resource_id, name, media_type)
        url = address(request, f"{self.house.mount}/file-links/{word}")
        return reply(self.house.table.object("file.link", url=url, expires_at=expires))

    async def delete(self, request: web.Request) -> web.Response:
        gone = await super().delete(request)
        await self.house.files.remove(request.match_info["id"])
        return gone

    async def shown(self, request: web.Request, found: Resource) -> Any:
        return views.file(self.house.table, found)

    def wanted(self, request: web.Request, found: Resource) -> bool:
        ids: Sequence[str] = request.query.getall("ids[]", [])
        name = request.query.get("name")
        return (not ids or found.resource_id in ids) and name in (None, "", found.body["name"])


def _fields(form: Form) -> FileFields:
    """The other fields of the form; metadata is JSON in a text."""
    said: dict[str, Any] = {word: text for word, text in form.fields.items() if text not in ("", "null")}
    if "metadata" in said:
        try:
            said["metadata"] = read_json(said["metadata"])
        except LimitExceeded as error:
            field = f"metadata.{error.field}" if error.field else "metadata"
            raise Invalid(f"{field}: {error.words}", param=field) from None
        except orjson.JSONDecodeError:
            raise Invalid("metadata: not JSON", param="metadata") from None
    return checked(FileFields, said)
