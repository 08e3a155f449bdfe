"""CAS's files: clients upload them as forms and fetch them by signed links."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import orjson
from aiohttp import web
from pydantic import BaseModel

from adapters.cas.server import resource_views as views
from adapters.cas.server.resource_routes import ResourceKind, ResourceRoutes
from adapters.cas.wire import CasSettings, FileFields
from gateway.errors import GatewayError, Invalid
from gateway.http import (
    FORM,
    OWNER,
    Answers,
    Context,
    absolute_url,
    attachment,
    download_headers,
    json_response,
    receive_form,
    safe_file_name,
    validate,
)
from gateway.json_values import JsonLimitExceeded, JsonValue, read_json
from gateway.ports import Resource
from gateway.resources import create_file_resource

BYTE_TYPES = ("application/binary", "application/octet-stream")
"""The `Accept` headers of a client that wants the bytes instead of a link."""


M = TypeVar("M", bound=BaseModel)
FILE = ResourceKind("file", "File", "file")


class FileRoutes:
    """The routes of files."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self._context = context
        self.stored = ResourceRoutes(context, FILE, self._body, is_listed=_is_listed)

    @Answers("file", status=201, reads_type=FORM)
    async def create(self, request: web.Request) -> web.Response:
        files, resources = self._context.files, self._context.resources
        form, stored = await receive_form(request, files)
        try:
            fields = read_form_fields(form.fields, FileFields)
        except GatewayError:
            await files.remove(stored.file_id)
            raise
        body: dict[str, Any] = {
            "name": safe_file_name(fields.name) if fields.name else form.name, "media_type": form.media_type,
            "metadata": fields.metadata or {},
        }
        made = await create_file_resource(files, resources, request[OWNER], stored, body)
        return json_response(await self._body(request, made), 201)

    @Answers("file.link", bytes_type="*/*")
    async def content(self, request: web.Request) -> web.StreamResponse:
        """A link that anybody can use for a while; or the bytes, for a client that asks for them."""
        found = await self.stored.found(request)
        name, media_type = found.body["name"], found.body["media_type"]
        if request.headers.get("Accept") in BYTE_TYPES:
            return await attachment(
                request, await self._context.files.open(found.resource_id), name, media_type)
        direct = await self._context.files.direct_link(found.resource_id, download_headers(name, media_type))
        if direct is not None:
            url, expires = direct
        else:
            word, expires = self._context.files.link(found.resource_id, name, media_type)
            url = absolute_url(request, f"{self._context.mount}/file-links/{word}")
        return json_response(self._context.table.object("file.link", url=url, expires_at=expires))

    @Answers("deleted.file")
    async def delete(self, request: web.Request) -> web.Response:
        gone = await self.stored.delete(request)
        await self._context.files.remove(request.match_info["id"])
        return gone

    async def _body(self, request: web.Request, found: Resource) -> JsonValue:
        return views.file_body(self._context.table, found)


def _is_listed(request: web.Request, found: Resource) -> bool:
    ids: Sequence[str] = request.query.getall("ids[]", [])
    name = request.query.get("name")
    return (not ids or found.resource_id in ids) and name in (None, "", found.body["name"])


def read_form_fields(fields: Mapping[str, str], model: type[M]) -> M:
    """The fields of a form beside its files; metadata is JSON in a text."""
    given: dict[str, Any] = {word: text for word, text in fields.items() if text not in ("", "null")}
    if "metadata" in given:
        try:
            given["metadata"] = read_json(given["metadata"])
        except JsonLimitExceeded as error:
            field = f"metadata.{error.field}" if error.field else "metadata"
            raise Invalid(f"{field}: {error.words}", param=field) from None
        except orjson.JSONDecodeError:
            raise Invalid("metadata: not JSON", param="metadata") from None
    return validate(model, given)
