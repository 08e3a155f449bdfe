"""The operations about requests of clients: how each resumes at a record, and how each would bring it about."""

from typing import Annotated

import orjson
from aiohttp import web
from msgspec import Struct
from pydantic import Field

import gateway.model as m
from gateway.errors import Invalid
from gateway.http import OWNER, absolute_url, json_response
from gateway.ports import ClientPlace, ClientRequest, FrameCursor

from .columns import ColumnItem
from .log_routes import MAX_RECORDS, column_items, fragments
from .operations import ConsoleQuery, ConsoleServices, DialectPlace, Operation, read_query

SHOWN_RECORDS = 40
"""How many records are read after the place, to show what a client gets."""
NOT_RESUMABLE = "clients of this dialect cannot resume: they read the session again"


class PlaceQuery(ConsoleQuery):
    seq: Annotated[int, Field(ge=1, le=10**15)]


class ResumedFrames(Struct, kw_only=True):
    """What a client gets at first; `more` if it gets more than that."""

    items: list[ColumnItem]
    more: bool


class DialectReconnect(Struct, kw_only=True):
    dialect: str
    cursor: FrameCursor
    """The cursor of the last frame that the client has had."""
    requests: list[ClientRequest]
    note: str | None
    gets: ResumedFrames


class ShownReconnect(Struct, kw_only=True):
    seq: int
    dialects: list[DialectReconnect]


class ExchangeRequest(Struct, kw_only=True):
    """A request of a client of one dialect."""

    dialect: str
    title: str
    kind: str
    text: str


class ShownExchange(Struct, kw_only=True):
    """The command that brought about a record, and what clients send so that the session gets it."""

    seq: int
    command: m.AnyCommand | None
    requests: list[ExchangeRequest]


class ReconnectRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services

    def operations(self) -> list[Operation]:
        return [
            Operation(method="GET", path="/sessions/{id}/reconnect", handler=self.reconnect, query=PlaceQuery,
                      answer=ShownReconnect, summary="Show what a client of each dialect sends if its connection was "
                                                     "cut after this record, and what it gets."),
            Operation(method="GET", path="/sessions/{id}/exchange", handler=self.exchange, query=PlaceQuery,
                      answer=ShownExchange,
                      summary="Show what a client of each dialect sends to bring about this record."),
        ]

    async def reconnect(self, request: web.Request) -> web.Response:
        view, seq = await self._place(request)
        turn_id, begun_at = await self._turn(view, seq)
        found = [await self._of(request, view, place, seq, turn_id, begun_at) for place in self._services.places]
        return json_response({"seq": seq, "dialects": found})

    async def exchange(self, request: web.Request) -> web.Response:
        view, seq = await self._place(request)
        command, turn_id = await self._command(view, seq)
        requests = []
        for one in self._services.places:
            make = self._services.parts().dialects[one.name].command_requests
            if make is None or command is None:
                continue
            place = self._client(request, view, one, turn_id=turn_id)
            requests += [ExchangeRequest(dialect=one.name, title=made.title, kind=made.kind, text=made.text)
                         for made in make(place, command)]
        shown = None if command is None else m.command_with_secrets(command, lambda secrets: {})
        return json_response(ShownExchange(seq=seq, command=shown, requests=requests))

    async def _place(self, request: web.Request) -> tuple[m.SessionView, int]:
        seq = read_query(request, PlaceQuery).seq
        view = await self._services.sessions.get(request[OWNER], request.match_info["id"])
        if seq > view.head:
            raise Invalid(f"seq: the session has {view.head} records", param="seq")
        return view, seq

    async def _turn(self, view: m.SessionView, seq: int) -> tuple[str | None, int]:
        """The turn of this record, and the record that began or resumed it last."""
        start = view.turn_start(seq - 1)
        records = await self._services.sessions.records(view.owner, view.session_id, start, seq - start)
        begins = [record for record in records if isinstance(record.event, m.TurnStarted | m.TurnResumed)]
        return (begins[-1].turn_id, begins[-1].seq) if begins else (None, 0)

    async def _command(self, view: m.SessionView, seq: int) -> tuple[m.AnyCommand | None, str | None]:
        """The last command before or at this record."""
        start = max(0, view.turn_start(seq - 1) - 8)
        records = await self._services.sessions.records(view.owner, view.session_id, start, seq - start)
        accepted = [record for record in records if isinstance(record.event, m.InputAccepted)]
        if not accepted:
            return None, None
        event = accepted[-1].event
        assert isinstance(event, m.InputAccepted)
        return event.command, accepted[-1].turn_id

    def _client(
        self, request: web.Request, view: m.SessionView, place: DialectPlace, turn_id: str | None = None,
        begun_at: int = 0, cursor: FrameCursor = None, frames: int = 0,
    ) -> ClientPlace:
        key = ' -H "Authorization: Bearer $KEY"' if self._services.auth else ""
        return ClientPlace(
            address=absolute_url(request, place.mount), key=key, session_id=view.session_id, turn_id=turn_id,
            begun_at=begun_at, cursor=cursor, frames=frames,
        )

    async def _of(
        self, request: web.Request, view: m.SessionView, place: DialectPlace, seq: int, turn_id: str | None,
        begun_at: int,
    ) -> dict[str, object]:
        dialect = self._services.parts().dialects[place.name]
        begin = max(begun_at - 1, seq - MAX_RECORDS, 0)
        had, _ = await column_items(self._services, view, place.name, begin, seq - begin)
        frames = [frame for item in had for frame in orjson.loads(item)["frames"]]
        cursor = next((frame["cursor"] for frame in reversed(frames) if frame["cursor"] is not None), None)
        at = self._client(request, view, place, turn_id, begun_at, cursor, len(frames))
        requests = list(dialect.resume_requests(at)) if dialect.resume_requests is not None else []
        gets, last = await column_items(self._services, view, place.name, seq, SHOWN_RECORDS)
        return {
            "dialect": place.name, "cursor": cursor, "requests": requests,
            "note": None if requests else NOT_RESUMABLE,
            "gets": {"items": fragments(gets), "more": last < view.head},
        }
