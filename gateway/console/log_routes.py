"""The operations that read the log of a session: records and frames, as pages and as a live stream."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import orjson
from aiohttp import web
from msgspec import Struct
from pydantic import Field

import gateway.model as m
from gateway.errors import Invalid
from gateway.http import OWNER, json_response, stream_sse
from gateway.json_values import EncodedArray
from gateway.time_slices import SLICE_BYTES, next_slice

from .column_streams import options_of_column, read_columns, read_positions, stream_of_column, subscribe_columns
from .columns import ColumnItem, RecordItem, encode_record_item
from .operations import SSE, ConsoleQuery, ConsoleServices, Operation, read_query

MAX_RECORDS = 2000
"""How many records a page has at most."""
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""A page ends before it has more bytes than that."""
AnyRecordNumber = Annotated[int, Field(ge=0, le=10**15)]


class RecordsQuery(ConsoleQuery):
    after: AnyRecordNumber = 0
    limit: Annotated[int, Field(ge=1, le=MAX_RECORDS)] = 500


class FramesQuery(RecordsQuery):
    dialect: Annotated[str, Field(max_length=100)]


class StreamQuery(ConsoleQuery):
    columns: Annotated[str, Field(max_length=1000)] = "records"
    after: AnyRecordNumber = 0


class RecordPage(Struct, kw_only=True):
    records: list[RecordItem]
    head: int
    next: int | None
    """The value of `after` for the next page; None if this is the last."""


class FramePage(Struct, kw_only=True):
    items: list[ColumnItem]
    head: int
    next: int | None


class StreamEnd(Struct, kw_only=True):
    """Why a stream ends: the client was too slow, the server restarts, or the session was closed or deleted."""

    reason: str


class LogRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._sessions = services.sessions

    def operations(self) -> list[Operation]:
        one = "/sessions/{id}"
        return [
            Operation(method="GET", path=f"{one}/records", handler=self.records, query=RecordsQuery, answer=RecordPage,
                      summary="Read a page of the canonical records of a session."),
            Operation(method="GET", path=f"{one}/frames", handler=self.frames, query=FramesQuery, answer=FramePage,
                      summary="Read a page of the frames of one dialect, with the record that each comes from."),
            Operation(method="GET", path=f"{one}/stream", handler=self.stream, query=StreamQuery, media_type=SSE,
                      events={"record": RecordItem, "frames": ColumnItem, "end": StreamEnd},
                      summary="Follow a session, from any record: canonical records and frames of dialects. "
                              "Resume with the header Last-Event-ID."),
        ]

    async def records(self, request: web.Request) -> web.Response:
        query = read_query(request, RecordsQuery)
        view = await self._sessions.get(request[OWNER], request.match_info["id"])
        return await records_page(self._services, view, query, encode_record_item)

    async def frames(self, request: web.Request) -> web.Response:
        query = read_query(request, FramesQuery)
        view = await self._sessions.get(request[OWNER], request.match_info["id"])
        return await frames_page(self._services, view, query)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        query = read_query(request, StreamQuery)
        names = read_columns(query.columns, [*self._services.parts().dialects])
        positions = read_positions(request.headers.get("Last-Event-ID"), names, query.after)
        self._services.check_open()
        view = await self._sessions.get(request[OWNER], request.match_info["id"])
        subscription = await subscribe_columns(self._sessions, self._services.columns, view, names, positions)
        try:
            return await stream_sse(
                request, subscription, heartbeat=self._services.heartbeat(), patience=self._services.send_timeout())
        finally:
            subscription.close()


async def records_page(
    services: ConsoleServices, view: m.SessionView, query: RecordsQuery, encode: Any,
) -> web.Response:
    """A page of the records of a session that the caller may read."""
    records = await services.sessions.records(view.owner, view.session_id, query.after, query.limit)
    found, size, last = list[bytes](), 0, query.after
    for record in records:
        if found and size > MAX_PAGE_BYTES:
            break
        found.append(encode(record))
        before, size, last = size, size + len(found[-1]), record.seq
        if before // SLICE_BYTES != size // SLICE_BYTES:
            await next_slice()
    return _page("records", found, view.head, last)


async def frames_page(
    services: ConsoleServices, view: m.SessionView, query: FramesQuery, shown: m.SessionView | None = None,
) -> web.Response:
    """A page of the items of a dialect's column; `shown` is what the reader may know of the session, if not all."""
    found, last = await column_items(services, view, query.dialect, query.after, query.limit, shown)
    return _page("items", found, view.head, last)


async def column_items(
    services: ConsoleServices, view: m.SessionView, dialect: str, after: int, limit: int,
    shown: m.SessionView | None = None,
) -> tuple[list[bytes], int]:
    """The items of so many records after that one, encoded, and the last record that was read."""
    if dialect not in services.parts().dialects:
        raise Invalid(f"dialect: there is no dialect '{dialect[:80]}'; there are "
                      f"{', '.join(services.parts().dialects)}", param="dialect")
    upto = min(after + limit, view.head)
    found, size, last = list[bytes](), 0, upto
    if after >= upto:
        return found, after
    chunks: AsyncIterator[Any] = await services.sessions.read(
        view.owner, view.session_id, stream_of_column(dialect),
        options_of_column(dialect, services.columns, shown or view), after=after, upto=upto)
    async for chunk in chunks:
        found += [frame.body for frame in chunk.frames]
        size += sum(len(frame.body) for frame in chunk.frames)
        if size > MAX_PAGE_BYTES:
            last = chunk.seq
            break
    return found, last


def _page(name: str, items: list[bytes], head: int, last: int) -> web.Response:
    following = last if last < head else None
    return json_response({name: EncodedArray(items), "head": head, "next": following})


def fragments(items: list[bytes]) -> list[orjson.Fragment]:
    """Encoded items within a larger body."""
    return [orjson.Fragment(item) for item in items]
