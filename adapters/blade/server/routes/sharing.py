"""Blade's exports and imports of sessions as ZIP files, and links by which strangers can read a session."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import BinaryIO

from aiohttp import web

import gateway.model as m
from adapters.blade.server import views
from adapters.blade.server.history import MESSAGE, message_bodies, update_private
from adapters.blade.wire import BladeSettings, ShareRequest
from gateway.errors import GatewayError
from gateway.http import (
    FORM,
    OWNER,
    Answers,
    Context,
    absolute_url,
    attachment,
    json_response,
    public,
    read_json,
    receive_form,
)
from gateway.resources import (
    SessionArchive,
    Shares,
    addresses_in,
    opened_file,
    pack_entries,
    session_entries,
    unpack_session,
    unpack_session_files,
)
from gateway.time_slices import one_at_a_time


def archive_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    archives, at = ArchiveRoutes(context), f"{context.mount}/sessions"
    return [
        web.get(f"{at}/{{id}}/export", archives.export),
        web.post(f"{at}/preview-import", archives.preview),
        web.post(f"{at}/import", archives.take),
    ]


class ArchiveRoutes:
    """The routes of archives, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context

    @Answers(media_type="application/zip")
    async def export(self, request: web.Request) -> web.StreamResponse:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        space = self.context.workspaces.of(view.session_id)
        async with one_at_a_time(view.owner):
            records = await self.context.sessions.records(view.owner, view.session_id)
            packed = await space.pack(pack_entries(session_entries(records, space, self.context.clock())))
        return await attachment(request, packed, f"{view.session_id}.zip", "application/zip")

    @Answers("import.preview", reads_type=FORM)
    async def preview(self, request: web.Request) -> web.Response:
        async with self._received(request) as (_, file), one_at_a_time(request[OWNER]):
            return json_response(views.import_preview_body(self.context.table, await self._unpacked(file)))

    @Answers("imported", reads_type=FORM)
    async def take(self, request: web.Request) -> web.Response:
        async with self._received(request) as (fields, file), one_at_a_time(request[OWNER]):
            found = await self._unpacked(file)
            self.context.check_stored_bytes(request[OWNER], found.bytes)
            view = await self.context.sessions.import_session(request[OWNER], found.records)
            await self._fill(view, file, fields)
        return json_response(self.context.table.object("imported", session_id=view.session_id))

    @asynccontextmanager
    async def _received(self, request: web.Request) -> AsyncIterator[tuple[dict[str, str], BinaryIO]]:
        """The fields of the form and the ZIP, which is deleted afterwards."""
        form, stored = await receive_form(request, self.context.files)
        try:
            async with opened_file(await self.context.files.open(stored.file_id)) as file:
                yield form.fields, file
        finally:
            await self.context.files.remove(stored.file_id)

    async def _unpacked(self, file: BinaryIO) -> SessionArchive:
        """The content of the ZIP, unless its records name a forbidden address."""
        return await asyncio.to_thread(self._checked, file)

    def _checked(self, file: BinaryIO) -> SessionArchive:
        found = unpack_session(file, self.context.dialect)
        self.context.check_addresses(addresses_in(found.records))
        return found

    async def _fill(self, view: m.SessionView, file: BinaryIO, fields: Mapping[str, str]) -> None:
        """Store the files and the name of an imported session; if one fails, the session is deleted."""
        title, solution = fields.get("name", "").strip()[:500], fields.get("solution_id", "").strip()
        try:
            await unpack_session_files(file, self.context.workspaces.of(view.session_id))
            if title or solution:
                template = {"solution_id": solution} if solution else {}
                await update_private(self.context, view.owner, view.session_id, title or None, **template)
        except (GatewayError, OSError):
            await self.context.sessions.delete(view.owner, view.session_id)
            raise


def share_routes(context: Context[BladeSettings]) -> list[web.RouteDef]:
    shares, at = ShareRoutes(context), f"{context.mount}/sessions/{{id}}/share"
    return [
        web.post(at, shares.create),
        web.delete(f"{at}/{{token}}", shares.revoke),
        web.get(f"{context.mount}/share/{{token}}", shares.read),
    ]


class ShareRoutes:
    """The routes of shares, one method each."""

    def __init__(self, context: Context[BladeSettings]) -> None:
        self.context = context
        self.sharing = Shares(context.resources, context.clock)

    @Answers("share", reads=ShareRequest, may_be_empty=True)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, ShareRequest) if request.can_read_body else ShareRequest()
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        token, share = await self.sharing.share(view.owner, view.session_id, body.ttl_seconds)
        url = absolute_url(request, f"{self.context.mount}/share/{token}")
        return json_response(self.context.table.object("share", token=token, url=url, expires_at=share.expires_at))

    @Answers("share.revoked")
    async def revoke(self, request: web.Request) -> web.Response:
        view = await self.context.sessions.get(request[OWNER], request.match_info["id"])
        await self.sharing.revoke(view.owner, view.session_id, request.match_info["token"])
        return json_response(self.context.table.object("share.revoked"))

    @public
    @Answers([MESSAGE])
    async def read(self, request: web.Request) -> web.Response:
        share = await self.sharing.open(request.match_info["token"])
        token = request.match_info["token"]
        return json_response(await message_bodies(self.context, share.owner, share.session_id, waits_with=token))
