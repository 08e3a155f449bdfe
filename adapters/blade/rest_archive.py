"""Blade's exports and imports: a session in a ZIP, and out of one as the importer's own."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from gateway.errors import GatewayError
from gateway.model import SessionView
from gateway.resources import Archive, Workspaces, addresses_in, pack, unpack, unpack_files
from gateway.time_slices import one_at_a_time
from gateway.web import OWNER, Context, attachment, receive, reply

from . import rest_views as views
from .rest_reading import keep


def archive_routes(context: Context) -> list[web.RouteDef]:
    archives, at = ArchiveRoutes(context), f"{context.mount}/sessions"
    return [
        web.get(f"{at}/{{id}}/export", archives.export),
        web.post(f"{at}/preview-import", archives.preview),
        web.post(f"{at}/import", archives.take),
    ]


class ArchiveRoutes:
    """One method per route."""

    def __init__(self, context: Context) -> None:
        self.house = context
        self.workspaces = Workspaces(context.data / "workspaces", trusted=lambda: context.trust_uploads)

    async def export(self, request: web.Request) -> web.StreamResponse:
        view = await self.house.sessions.get(request[OWNER], request.match_info["id"])
        space = self.workspaces.of(view.session_id)
        draft = space.draft()
        try:
            async with one_at_a_time(view.owner):
                records = await self.house.sessions.records(view.owner, view.session_id)
                await asyncio.to_thread(pack, draft, records, space, self.house.clock())
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        return attachment(draft, f"{view.session_id}.zip", "application/zip", fleeting=True)

    async def preview(self, request: web.Request) -> web.Response:
        async with self._received(request) as (_, file), one_at_a_time(request[OWNER]):
            return reply(views.import_preview(self.house.table, await self._unpacked(file)))

    async def take(self, request: web.Request) -> web.Response:
        async with self._received(request) as (fields, file), one_at_a_time(request[OWNER]):
            found = await self._unpacked(file)
            self.house.check_room(request[OWNER], found.bytes)
            view = await self.house.sessions.adopt(request[OWNER], found.records)
            await self._fill(view, file, fields)
        return reply(self.house.table.object("imported", session_id=view.session_id))

    @asynccontextmanager
    async def _received(self, request: web.Request) -> AsyncIterator[tuple[dict[str, str], Path]]:
        """The fields of the form and the ZIP, which is gone afterwards."""
        form, stored = await receive(request, self.house.files)
        try:
            yield form.fields, self.house.files.path(stored.file_id)
        finally:
            await self.house.files.remove(stored.file_id)

    async def _unpacked(self, file: Path) -> Archive:
        """What is in the ZIP, if its records name no address that clients may not name."""
        return await asyncio.to_thread(self._checked, file)

    def _checked(self, file: Path) -> Archive:
        found = unpack(file, self.house.dialect)
        self.house.check_addresses(addresses_in(found.records))
        return found

    async def _fill(self, view: SessionView, file: Path, fields: Mapping[str, str]) -> None:
        """The session's files and its name; without all of them the session does not stay either."""
        title, solution = fields.get("name", "").strip()[:500], fields.get("solution_id", "").strip()
        try:
            await asyncio.to_thread(unpack_files, file, self.workspaces.of(view.session_id))
            if title or solution:
                said = {"solution_id": solution} if solution else {}
                await keep(self.house, view.owner, view.session_id, title or None, **said)
        except (GatewayError, OSError):
            await self.house.sessions.delete(view.owner, view.session_id)
            raise
