"""The operations that carry sessions out and in, and links by which others may read one session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, BinaryIO, Literal

from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

import gateway.model as m
from gateway.errors import GatewayError
from gateway.http import (
    OWNER,
    WireModel,
    absolute_url,
    attachment,
    bytes_attachment,
    json_response,
    read_bytes,
    read_json,
    receive_form,
)
from gateway.resources import (
    SessionArchive,
    Shares,
    addresses_in,
    opened_file,
    pack_entries,
    read_session_lines,
    session_entries,
    unpack_session,
    unpack_session_files,
)
from gateway.time_slices import SLICE_BYTES, next_slice, one_at_a_time

from .columns import encode_record_item
from .log_routes import FramePage, FramesQuery, RecordPage, RecordsQuery, frames_page, records_page
from .operations import OCTETS, ConsoleQuery, ConsoleServices, Operation, read_query
from .session_rows import SessionRow, ShownSession, row_of, session_of
from .static_files import PAGE

PAGE_OF_RECORDS = 512
ZIP_START = b"PK\x03\x04"
DAY_SECONDS = 86_400.0


class ExportQuery(ConsoleQuery):
    format: Literal["jsonl", "zip"] = "jsonl"


class ShareToCreate(WireModel):
    days: Annotated[float, Field(gt=0, le=365)] = 7


class CreatedShare(Struct, kw_only=True):
    """A link to a session; its token is shown only now."""

    token: str
    url: str
    expires_at: float


class SharedSession(Struct, kw_only=True):
    session: SessionRow
    dialects: list[str]
    expires_at: float


class ArchiveOperations:
    """Export and import: one method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/sessions/{id}/export", handler=self.export, query=ExportQuery,
                      media_type=OCTETS, summary="Download a session: its records as JSON lines, or a ZIP with its "
                                                 "files. Secrets are left out."),
            Operation(method="POST", path="/sessions/import", handler=self.take, body_type=OCTETS, status=201,
                      answer=ShownSession,
                      summary="Import a session from such a file, sent as it is or as the field `file` of a form."),
        ]

    async def export(self, request: web.Request) -> web.StreamResponse:
        query, sessions = read_query(request, ExportQuery), self._services.sessions
        view = await sessions.get(request[OWNER], request.match_info["id"])
        async with one_at_a_time(view.owner):
            if query.format == "zip":
                return await self._zip(request, view)
            return bytes_attachment(b"".join(await self._lines(view)), f"{view.session_id}.jsonl", "application/jsonl")

    async def _lines(self, view: m.SessionView) -> list[bytes]:
        lines, after, size = list[bytes](), 0, 0
        while page := await self._services.sessions.records(view.owner, view.session_id, after, PAGE_OF_RECORDS):
            for record in page:
                lines.append(m.encode_record(m.with_secrets(record, lambda secrets: {})) + b"\n")
                before, size = size, size + len(lines[-1])
                if before // SLICE_BYTES != size // SLICE_BYTES:
                    await next_slice()
            after = page[-1].seq
        return lines

    async def _zip(self, request: web.Request, view: m.SessionView) -> web.StreamResponse:
        space = self._services.workspaces.of(view.session_id)
        records = await self._services.sessions.records(view.owner, view.session_id)
        packed = await space.pack(pack_entries(session_entries(records, space, self._services.clock())))
        return await attachment(request, packed, f"{view.session_id}.zip", "application/zip")

    async def take(self, request: web.Request) -> web.Response:
        owner = request[OWNER]
        async with self._received(request) as file, one_at_a_time(owner):
            is_zip = await asyncio.to_thread(_is_zip, file)
            found = await asyncio.to_thread(self._checked, file, is_zip)
            self._services.check_stored_bytes(owner, found.bytes)
            view = await self._services.sessions.import_session(owner, found.records)
            try:
                if is_zip:
                    await unpack_session_files(file, self._services.workspaces.of(view.session_id))
            except (GatewayError, OSError):
                await self._services.sessions.delete(owner, view.session_id)
                raise
        return json_response(session_of(view), 201)

    @asynccontextmanager
    async def _received(self, request: web.Request) -> AsyncIterator[BinaryIO]:
        """The file of the request, which is deleted afterwards."""
        files = self._services.files
        if request.content_type == "multipart/form-data":
            _, stored = await receive_form(request, files)
        else:
            stored = await files.store(_once(await read_bytes(request)))
        try:
            async with opened_file(await files.open(stored.file_id)) as file:
                yield file
        finally:
            await files.remove(stored.file_id)

    def _checked(self, file: BinaryIO, is_zip: bool) -> SessionArchive:
        """The content of the file, unless its records name a forbidden address."""
        found = unpack_session(file, "") if is_zip else read_session_lines(_whole(file))
        for field, url in addresses_in(found.records):
            if not url.startswith("data:"):
                self._services.addresses().check(url, field)
        return found


class ShareOperations:
    """Links to sessions: one method per operation. A link shows the conversation, and nothing of the settings."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._shares = Shares(services.resources, services.clock)

    def operations(self) -> list[Operation]:
        at = "/shared/{token}"
        return [
            Operation(method="POST", path="/sessions/{id}/shares", handler=self.share, body=ShareToCreate,
                      answer=CreatedShare, status=201, summary="Create a link by which others may read the session."),
            Operation(method="DELETE", path="/sessions/{id}/shares/{token}", handler=self.revoke, status=204,
                      summary="Revoke a link."),
            Operation(method="GET", path=at, handler=self.shared, answer=SharedSession, is_public=True,
                      summary="Read the session of a link."),
            Operation(method="GET", path=f"{at}/records", handler=self.records, query=RecordsQuery, answer=RecordPage,
                      is_public=True, summary="Read a page of the records of a link's session."),
            Operation(method="GET", path=f"{at}/frames", handler=self.frames, query=FramesQuery, answer=FramePage,
                      is_public=True, summary="Read a page of the frames of a link's session."),
        ]

    async def share(self, request: web.Request) -> web.Response:
        body = await read_json(request, ShareToCreate) if request.can_read_body else ShareToCreate()
        view = await self._services.sessions.get(request[OWNER], request.match_info["id"])
        token, share = await self._shares.share(view.owner, view.session_id, body.days * DAY_SECONDS)
        url = absolute_url(request, f"{PAGE}?share={token}")
        return json_response(CreatedShare(token=token, url=url, expires_at=share.expires_at), 201)

    async def revoke(self, request: web.Request) -> web.Response:
        view = await self._services.sessions.get(request[OWNER], request.match_info["id"])
        await self._shares.revoke(view.owner, view.session_id, request.match_info["token"])
        return web.Response(status=204)

    async def _view(self, request: web.Request) -> tuple[m.SessionView, float]:
        share = await self._shares.open(request.match_info["token"])
        return await self._services.sessions.get(share.owner, share.session_id), share.expires_at

    async def shared(self, request: web.Request) -> web.Response:
        view, expires_at = await self._view(request)
        dialects = [*self._services.parts().dialects]
        return json_response(SharedSession(session=row_of(view), dialects=dialects, expires_at=expires_at))

    async def records(self, request: web.Request) -> web.Response:
        query = read_query(request, RecordsQuery)
        view, _ = await self._view(request)
        async with one_at_a_time(request.match_info["token"]):
            return await records_page(self._services, view, query, _encode_shared)

    async def frames(self, request: web.Request) -> web.Response:
        query = read_query(request, FramesQuery)
        view, _ = await self._view(request)
        async with one_at_a_time(request.match_info["token"]):
            stranger = m.SessionView(
                session_id=view.session_id, agent=view.agent, title=view.title, created_at=view.created_at)
            return await frames_page(self._services, view, query, stranger)


def _encode_shared(record: m.Record) -> bytes:
    """The record without settings, metadata and the owner."""
    record = m.with_settings(record, lambda settings: m.Settings())
    event = record.event
    if isinstance(event, m.SessionCreated):
        record = replace(record, event=replace(event, owner="", metadata={}))
    elif isinstance(event, m.SessionUpdated):
        record = replace(record, event=replace(event, metadata=None))
    return encode_record_item(record)


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _is_zip(file: BinaryIO) -> bool:
    return file.read(len(ZIP_START)) == ZIP_START


def _whole(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()
