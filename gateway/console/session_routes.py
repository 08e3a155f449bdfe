"""The operations on sessions: list, search, create, read, rename, delete."""

from collections.abc import Sequence
from typing import Annotated

from aiohttp import web
from msgspec import Struct
from pydantic import Field

import gateway.model as m
from gateway.errors import NotFound
from gateway.http import OWNER, WireModel, decode_cursor, encode_cursor, json_response, read_json
from gateway.json_values import JsonObject
from gateway.ports import ListOrder, SessionFilter
from gateway.time_slices import one_at_a_time

from .operations import ConsoleQuery, ConsoleServices, Operation, read_query
from .session_rows import SessionRow, ShownSession, ShownStatus, fits, may_fit, row_of, session_of

MAX_PAGE, OPENED, SUMMARIES = 200, 400, 1000
"""How many rows a page may have, how many sessions one search opens, and how many summaries it reads at once."""
MAX_ACTIVE = 200
"""How many sessions with a turn are listed."""
Title = Annotated[str, Field(max_length=500)]


class SessionPageQuery(ConsoleQuery):
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Field(max_length=100)] | None = None
    q: Annotated[str, Field(max_length=200)] = ""
    status: ShownStatus | None = None
    agent: Annotated[str, Field(max_length=200)] | None = None
    order: ListOrder = "updated"


class SessionPage(Struct, kw_only=True):
    """A page, newest first. A search opens a limited number of sessions: `next` goes on where it stopped."""

    sessions: list[SessionRow]
    next: str | None
    scanned: int


class ActiveSessions(Struct, kw_only=True):
    sessions: list[SessionRow]


class ClientTool(WireModel):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=10_000)] = ""
    parameters: JsonObject = Field(default_factory=dict)


class SessionToCreate(WireModel):
    agent: Annotated[str, Field(max_length=200)] | None = None
    title: Title | None = None
    options: dict[str, str] = Field(default_factory=dict)
    client_tools: list[ClientTool] = Field(default_factory=list, max_length=64)


class SessionRename(WireModel):
    title: Title


class ConsoleSessionRoutes:
    """One method per operation."""

    def __init__(self, services: ConsoleServices) -> None:
        self._services = services
        self._sessions = services.sessions

    def operations(self) -> list[Operation]:
        one = "/sessions/{id}"
        return [
            Operation(method="GET", path="/sessions", handler=self.page, query=SessionPageQuery, answer=SessionPage,
                      summary="List or search the sessions, newest first."),
            Operation(method="GET", path="/sessions/active", handler=self.active, answer=ActiveSessions,
                      summary="List the sessions in which a turn runs or waits."),
            Operation(method="POST", path="/sessions", handler=self.create, body=SessionToCreate, answer=ShownSession,
                      status=201, summary="Create a session with any agent."),
            Operation(method="GET", path=one, handler=self.get, answer=ShownSession, summary="Read one session."),
            Operation(method="PATCH", path=one, handler=self.change, body=SessionRename, answer=ShownSession,
                      summary="Rename a session."),
            Operation(method="DELETE", path=one, handler=self.delete, status=204, summary="Delete a session."),
        ]

    async def page(self, request: web.Request) -> web.Response:
        query, owner = read_query(request, SessionPageQuery), request[OWNER]
        start, words = decode_cursor(query.cursor) or 0, query.q.casefold().split()
        labels = (*([m.agent_label(query.agent)] if query.agent is not None else []),
                  *([m.FAILED_SESSION] if query.status is ShownStatus.FAILED else []))
        if not words and query.status is None:
            return await self._plain_page(owner, SessionFilter(labels=labels), query, start)
        async with one_at_a_time(owner):
            return await self._search(owner, SessionFilter(labels=labels), query, start, words)

    async def _plain_page(
        self, owner: str, wanted: SessionFilter, query: SessionPageQuery, start: int,
    ) -> web.Response:
        listed, total = await self._sessions.find(owner, wanted, order=query.order, offset=start, limit=query.limit)
        rows = [row for one in listed if (row := await self._row(owner, one.session_id)) is not None]
        end = start + len(listed)
        return self._answer(rows, end if listed and end < total else None, len(listed))

    async def _search(
        self, owner: str, wanted: SessionFilter, query: SessionPageQuery, start: int, words: Sequence[str],
    ) -> web.Response:
        """Look at summaries until the page is full; of sessions without a title, so many are opened at most."""
        found, opened, at = list[SessionRow](), 0, start
        while True:
            listed, total = await self._sessions.find(owner, wanted, order=query.order, offset=at, limit=SUMMARIES)
            for one in listed:
                if len(found) >= query.limit or opened >= OPENED:
                    return self._answer(found, at, at - start)
                at += 1
                if not may_fit(one, words, query.status):
                    continue
                opened += 1
                row = await self._row(owner, one.session_id)
                if row is not None and fits(row, words, query.status):
                    found.append(row)
            if not listed or at >= total:
                return self._answer(found, None, at - start)

    async def _row(self, owner: str, session_id: str) -> SessionRow | None:
        try:
            rows = self._rows([await self._sessions.get(owner, session_id)])
        except NotFound:  # it was deleted meanwhile
            return None
        return rows[0] if rows else None

    def _answer(self, rows: list[SessionRow], following: int | None, scanned: int) -> web.Response:
        return json_response(SessionPage(sessions=rows, next=encode_cursor(following), scanned=scanned))

    def _rows(self, views: Sequence[m.SessionView]) -> list[SessionRow]:
        return [row_of(view, self._services.watchers(view.session_id)) for view in views
                if view.closed is not m.CloseReason.DELETED]

    async def active(self, request: web.Request) -> web.Response:
        views = await self._sessions.active(request[OWNER])
        return json_response(ActiveSessions(sessions=self._rows(views[:MAX_ACTIVE])))

    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, SessionToCreate)
        agent = body.agent or self._services.default_agent()
        if agent not in (cards := self._services.parts().cards):
            raise NotFound(f"there is no agent '{agent}'; there are {', '.join(cards)}", param="agent")
        tools = tuple(m.ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters)
                      for tool in body.client_tools)
        secret = {one.name for one in cards[agent].options if one.kind is m.OptionKind.SECRET}
        settings = m.Settings(
            options={name: value for name, value in body.options.items() if name not in secret},
            secrets={name: value for name, value in body.options.items() if name in secret}, client_tools=tools,
        )
        view = await self._sessions.create(request[OWNER], agent, settings=settings, title=body.title)
        return self._shown(view, 201)

    async def get(self, request: web.Request) -> web.Response:
        return self._shown(await self._sessions.get(request[OWNER], request.match_info["id"]))

    async def change(self, request: web.Request) -> web.Response:
        body = await read_json(request, SessionRename)
        return self._shown(await self._sessions.update(request[OWNER], request.match_info["id"], title=body.title))

    async def delete(self, request: web.Request) -> web.Response:
        await self._sessions.delete(request[OWNER], request.match_info["id"])
        return web.Response(status=204)

    def _shown(self, view: m.SessionView, status: int = 200) -> web.Response:
        return json_response(session_of(view, self._services.watchers(view.session_id)), status)
