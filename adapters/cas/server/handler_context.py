"""What every handler of CAS needs: the caller's session, its agent, its mounts and its body."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from aiohttp import web

import gateway.model as m
from adapters.cas.bodies import AgentBody
from adapters.cas.wire import CasSettings, PreviewedType, sessions
from gateway.errors import Busy, Conflict, Invalid, NotFound
from gateway.http import OWNER, Context
from gateway.json_values import JsonObject, JsonValue

from . import inbound, views
from .agents import agent_id_of
from .history import EventHistory, StreamStart
from .mounts import SessionMounts, mount_body
from .paging import ListPage, page_of_rows
from .session_setup import choose_agent
from .stream_options import session_stream_options, thread_id_of

T = TypeVar("T")

BUSY_MESSAGE = "Session is currently processing a turn. Cancel the current turn or wait for completion."
"""Clients look for this text."""


@contextmanager
def session_errors(session_id: str) -> Iterator[None]:
    """Raise the errors of a session with the texts that clients of CAS know."""
    try:
        yield
    except Busy:
        raise Conflict(BUSY_MESSAGE) from None
    except NotFound:
        raise NotFound(f"Session '{session_id}' was not found.") from None


class HandlerContext:
    """Finds the session, agent, mounts and history that a request names; all handlers share one."""

    def __init__(self, context: Context[CasSettings]) -> None:
        self.context = context
        self.stream_start = StreamStart(context)

    async def session(self, request: web.Request) -> m.SessionView:
        with session_errors(request.match_info["session"]):
            return await self.context.sessions.get(request[OWNER], request.match_info["session"])

    def card(self, view: m.SessionView) -> m.AgentCard:
        return self.context.agent_of(view)

    async def agent(self, view: m.SessionView) -> Mapping[str, JsonValue]:
        """The agent as it was when CAS made the session, or as it is now, if another dialect made the session."""
        kept: Mapping[str, JsonValue] | None = view.private(self.context.dialect).get("agent")
        if kept is not None:
            return kept
        agent_id, version = self.agent_id(view), view.settings.agent_version
        try:
            ref: str | JsonObject = agent_id if version is None else {"id": agent_id, "version": version}
            return (await choose_agent(self.context, view.owner, ref)).snapshot
        except (NotFound, Conflict):  # the agent was deleted or archived since
            return self._lost_agent(view, agent_id)

    def _lost_agent(self, view: m.SessionView, agent_id: str) -> JsonObject:
        """All that is still known of an agent that is gone, with every member that clients read."""
        return self.context.table.object(AgentBody.row, AgentBody(
            id=agent_id, name=view.agent, description="", model="", system="", tools=[], mcp_servers=[], skills=[],
            metadata={}, version=view.settings.agent_version or 1, archived_at=None,
            created_at=view.created_at, updated_at=view.created_at,
        ))

    def agent_id(self, view: m.SessionView) -> str:
        return agent_id_of(view, view.private(self.context.dialect))

    async def check_sources(self, owner: str, events: Sequence[object], field: str) -> None:
        """Refuse events that name an unknown file, a file of another owner, or a forbidden address.

        `field` is the place of the events in the body.
        """
        sources = [(f"{field}.{at}.source", getattr(block, "source", None)) for at, block in inbound.blocks_of(events)]
        await self.context.check_message_addresses(
            (f"{param}.url", source.url) for param, source in sources if isinstance(source, sessions.UrlSource))
        for param, source in sources:
            if isinstance(source, sessions.FileSource):
                await self._check_file(owner, source.file_id, f"{param}.file_id")

    async def _check_file(self, owner: str, file_id: str, param: str) -> None:
        """Refuse a file that is unknown, archived, or of another owner; the last looks like an unknown file."""
        try:
            found = await self.context.resources.get("file", owner, file_id)
        except NotFound:
            raise NotFound(f"{param}: File '{file_id[:128]}' was not found.", param=param) from None
        if found.archived_at is not None:
            raise Invalid(f"{param}: File '{file_id}' is archived.", param=param)

    async def page_of(
        self, request: web.Request, rows: Sequence[T], *, place_of: Callable[[T], int], id_of: Callable[[T], str],
    ) -> ListPage[T]:
        """A page of a list in memory; oldest first unless the client wants another order."""
        return await page_of_rows(request.query, rows, id_of=id_of, place_of=place_of, ascending=True)

    async def shown(self, view: m.SessionView) -> Any:
        shown = [mount_body(self.context.table, mount) for mount in await self.mounts(view).all()]
        return views.session_body(self.context.table, view, await self.agent(view), shown)

    def mounts(self, view: m.SessionView) -> SessionMounts:
        return SessionMounts(self.context, view.owner, view.session_id)

    def history(
        self,
        view: m.SessionView,
        scope_id: str | None = None,
        deltas: tuple[PreviewedType, ...] = (),
        *,
        as_list: bool,
    ) -> EventHistory:
        return EventHistory(
            self.context, view.owner, view, session_stream_options(view, scope_id, deltas, as_list=as_list)
        )

    def scope(self, request: web.Request, view: m.SessionView) -> str | None:
        """The scope of the thread in the path; None if the path names no thread."""
        thread_id = request.match_info.get("thread")
        if thread_id is None:
            return None
        for scope_id in (m.ROOT, *view.scopes):
            if thread_id_of(view.session_id, scope_id) == thread_id:
                return scope_id
        raise NotFound(f"Thread '{thread_id}' was not found.")
