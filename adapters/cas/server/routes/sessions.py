"""CAS's HTTP handlers for sessions, and changes of their agent."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from operator import attrgetter
from typing import Any, NamedTuple

from aiohttp import web
from msgspec.structs import replace

import gateway.model as m
from adapters.cas.server import inbound
from adapters.cas.server.agents import HASHED_ID, configured_id
from adapters.cas.server.environments import find_environment
from adapters.cas.server.handler_context import BUSY_MESSAGE, HandlerContext, session_errors
from adapters.cas.server.inbound import client_tools, server_tools
from adapters.cas.server.mounts import MOUNT, Mount, check_paths, checked_mount
from adapters.cas.server.paging import (
    CREATED_QUERY,
    MAX_SCANNED,
    ListPage,
    TimeRange,
    bool_param,
    created_within,
    fetch_page,
    listed_answers,
    page_reply,
    page_request,
    query_words,
    words_query,
)
from adapters.cas.server.resource_routes import updated_metadata
from adapters.cas.server.session_setup import (
    check_memory_store,
    check_vault,
    choose_agent,
    choose_environment,
    read_variables,
    refuse_variables,
)
from adapters.cas.server.views import session_status
from adapters.cas.wire import DEFAULT_ENVIRONMENT, AgentFields, NewSession, SessionChange
from adapters.cas.wire.common import CONFIGURED_PREFIX, NOTES_STORE
from gateway.errors import Conflict, Invalid, NotFound
from gateway.http import OWNER, Answers, Row, json_response, read_json, validate
from gateway.json_values import JsonObject
from gateway.ports import ListedSession, SessionFilter

SELF_HOSTED = "self_hosted"
ORDINAL = attrgetter("ordinal")
CHANGEABLE = "title, metadata, agent, environment_variables and vault_ids can change, and resources under …/resources"
SESSION = Row("session", agent="agent", resources=[MOUNT])
"""The shape of a session."""
SessionRow = tuple[int, m.SessionView]
"""A session and its place in the list."""


def _within(
    rows: Sequence[ListedSession], *, after: int | None, before: int | None, limit: int, oldest_first: bool,
) -> Sequence[ListedSession]:
    """Up to `limit` rows between two places, in ascending or descending order."""
    low = 0 if after is None else bisect_right(rows, after, key=ORDINAL)
    high = len(rows) if before is None else bisect_left(rows, before, key=ORDINAL)
    return rows[low:high][:limit] if oldest_first else rows[low:high][::-1][:limit]


def session_routes(handlers: HandlerContext) -> list[web.RouteDef]:
    """The routes of sessions."""
    cas, one = SessionRoutes(handlers), "/sessions/{session}"
    return [
        web.post("/sessions", cas.create),
        web.get("/sessions", cas.listed),
        web.get(one, cas.get),
        web.post(one, cas.update),
        web.put(one, cas.update),
        web.delete(one, cas.delete),
        web.post(f"{one}/archive", cas.archive),
        web.post(f"{one}/cancel", cas.cancel),
    ]


class SessionRoutes:
    """The routes of sessions, one method each."""

    def __init__(self, handlers: HandlerContext) -> None:
        self.handlers = handlers
        self.context = handlers.context

    # -- making one -----------------------------------------------------------------------------------------------

    @Answers(SESSION, status=201, reads=NewSession)
    async def create(self, request: web.Request) -> web.Response:
        body = await read_json(request, NewSession)
        owner, context = request[OWNER], self.context
        variables, mounts = read_variables(body.environment_variables), await self._mounts(owner, body)
        choice = await choose_agent(context, owner, body.agent)
        inbound.check_initial_events(body.initial_events or [], context.agent(choice.agent), context.table)
        await self.handlers.check_sources(owner, body.initial_events or [], "initial_events")
        own = await self._environment(owner, body, variables) | {
            "agent": choice.snapshot, "agent_id": choice.agent_id, "agent_version": choice.version,
            m.SECRETS: variables, "vault_ids": body.vault_ids or [],
            "memory_store_ids": body.memory_store_ids or [], "incremental": bool(body.incremental_streaming_enabled),
        }

        async def undo_environment() -> None:
            if isinstance(body.environment, dict):  # it was described, and made for this session
                await context.resources.delete("environment", owner, own["environment_id"])

        stores = {*(body.memory_store_ids or []), *(mount.body.get("memory_store_id") for mount in mounts)}
        settings = replace(choice.settings, memory=True) if NOTES_STORE in stores else choice.settings
        async with context.undo_if_refused(undo_environment):
            view = await context.sessions.create(
                owner, choice.agent, settings=settings, title=body.title,
                metadata={**(body.metadata or {}), m.PRIVATE: {context.dialect: own}},
            )
            return json_response(await self._begun(view, mounts, body), 201)

    async def _mounts(self, owner: str, body: NewSession) -> list[Mount]:
        await self._check_vaults(owner, body.vault_ids or [])
        for store_id in body.memory_store_ids or []:
            await check_memory_store(self.context, owner, store_id)
        given = enumerate(body.resources or [])
        mounts = [await checked_mount(self.context, owner, one, f"resources.{number}") for number, one in given]
        check_paths(mounts)
        return mounts

    async def _check_vaults(self, owner: str, vault_ids: Sequence[str]) -> None:
        for vault_id in vault_ids:
            try:
                await check_vault(self.context, owner, vault_id)
            except Invalid as error:
                raise Invalid(f"vault_ids: {error.message}", param="vault_ids") from None

    async def _environment(self, owner: str, body: NewSession, variables: dict[str, str]) -> dict[str, Any]:
        """A described environment is made last, when nothing can be refused any more."""
        inline = body.environment.get("config") if isinstance(body.environment, dict) else None
        if isinstance(inline, dict) and inline.get("type") == SELF_HOSTED:
            refuse_variables(variables)
        chosen = await choose_environment(
            self.context, owner, body.model_dump(include={"environment_id", "environment"})
        )
        if chosen.self_hosted:
            refuse_variables(variables)
        return {"environment_id": chosen.environment_id}

    async def _begun(self, view: m.SessionView, mounts: Sequence[Mount], body: NewSession) -> object:
        async def undo() -> None:
            await self.handlers.mounts(view).clear()
            await self.context.sessions.delete(view.owner, view.session_id)

        async with self.context.undo_if_refused(undo):
            for mount in mounts:
                await self.handlers.mounts(view).add(mount)
            if body.initial_events:
                commands = inbound.commands_of(body.initial_events, view, self.handlers.card(view), self.context.table)
                await self.context.sessions.submit(view.owner, view.session_id, commands)
        with self.context.committed():
            return await self.handlers.shown(view)

    # -- reading --------------------------------------------------------------------------------------------------

    @Answers(SESSION)
    async def get(self, request: web.Request) -> web.Response:
        return json_response(await self.handlers.shown(await self.handlers.session(request)))

    @listed_answers(SESSION, {
        **CREATED_QUERY, **words_query("statuses", "status", "agent_id"), "include_archived": bool,
    })
    async def listed(self, request: web.Request) -> web.Response:
        page = await self._page(request)
        return await page_reply(self.context.table, page, [await self.handlers.shown(view) for _, view in page.items])

    async def _view(self, owner: str, session_id: str) -> m.SessionView:
        """The session as it is; one that was deleted since the list was made is shown as deleted."""
        try:
            return await self.context.sessions.get(owner, session_id)
        except NotFound:
            return m.SessionView(session_id=session_id, closed=m.CloseReason.DELETED)

    async def _page(self, request: web.Request) -> ListPage[SessionRow]:
        owner, sessions, query = request[OWNER], self.context.sessions, request.query
        statuses, agents, in_time = (
            query_words(query, "statuses", "status"),
            query_words(query, "agent_id"),
            created_within(query),
        )
        archived = bool_param(query, "include_archived")
        few = await self._candidates(owner, statuses, agents, in_time)

        async def fetch(**window: Any) -> Sequence[SessionRow]:
            heads = await sessions.heads(owner, **window) if few is None else _within(few, **window)
            return [(head.ordinal, await self._view(owner, head.session_id)) for head in heads]

        async def find(session_id: str) -> SessionRow:
            return (await sessions.head(owner, session_id)).ordinal, await sessions.get(owner, session_id)

        def keep(row: SessionRow) -> bool:
            view = row[1]
            return view.closed is not m.CloseReason.DELETED and (
                (archived or view.closed is not m.CloseReason.ARCHIVED) and view.created_at in in_time
                and (not statuses or session_status(self.context.table, view) in statuses)
                and (not agents or self.handlers.agent_id(view) in agents)
            )

        return await fetch_page(page_request(query), fetch, place_of=lambda row: row[0], find=find, keep=keep)

    async def _candidates(
        self, owner: str, statuses: frozenset[str], agents: frozenset[str], in_time: TimeRange,
    ) -> Sequence[ListedSession] | None:
        """The sessions among which all are that fit the filters, by ordinal; None if they are too many to say."""
        if statuses and not statuses & {self.context.table.word("session_status", one) for one in m.SessionStatus}:
            return ()
        if in_time.bounds:
            rows = await self.context.sessions.created_between(owner, in_time.first, in_time.last, MAX_SCANNED + 1)
            if rows is not None and len(rows) <= MAX_SCANNED:
                return sorted(rows, key=ORDINAL)
        if not agents:
            return None
        found: dict[int, ListedSession] = {}
        for agent in agents:
            rows = await self._rows_of_agent(owner, agent)
            if rows is None or (not rows and HASHED_ID.fullmatch(agent)):  # it may be an agent that was configured once
                return None
            found |= {row.ordinal: row for row in rows}
        return [found[ordinal] for ordinal in sorted(found)]

    async def _rows_of_agent(self, owner: str, agent_id: str) -> Sequence[ListedSession] | None:
        """The sessions that an agent may have; None if one is in nearly every page of all sessions."""
        found: list[ListedSession] = []
        for label in set(self._agent_labels(agent_id)):
            rows, total = await self.context.sessions.find(owner, SessionFilter(labels=(label,)), limit=MAX_SCANNED)
            if total > MAX_SCANNED:
                return None
            found += rows
        return found

    def _agent_labels(self, agent_id: str) -> Iterator[str]:
        """The lists in which the sessions of an agent stand, whether CAS, another dialect or nobody has chosen it."""
        yield m.field_label(self.context.dialect, "agent_id", agent_id)
        yield m.agent_label(agent_id)
        names = {name for name in self.context.agents if configured_id(name) == agent_id}
        yield from map(m.agent_label, names | {agent_id.removeprefix(CONFIGURED_PREFIX)})

    # -- changing -------------------------------------------------------------------------------------------------

    @Answers(SESSION, reads=SessionChange)
    async def update(self, request: web.Request) -> web.Response:
        view, change = await self.handlers.session(request), await read_json(request, SessionChange)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        if change.fixed is not None:
            raise Invalid(f"{change.fixed}: an update cannot change it; {CHANGEABLE}", param=change.fixed)
        metadata = None if change.metadata is None else self._changed(view, change.metadata)
        own = await self._own_changes(view, change)
        if change.agent is not None:
            agent = await agent_update(self.handlers, view, change.agent)
            await self.context.sessions.submit(view.owner, view.session_id, [agent.settings])
            own["agent"] = agent.snapshot
        if own:
            held = view.shown_metadata if metadata is None else metadata
            metadata = held | private_metadata(view, self.context.dialect, own)
        with self.context.committed() if change.agent is not None else nullcontext():
            if change.title is not None or metadata is not None:
                await self.context.sessions.update(view.owner, view.session_id, title=change.title, metadata=metadata)
        with self.context.committed():
            return json_response(await self.handlers.shown(view))

    async def _own_changes(self, view: m.SessionView, change: SessionChange) -> dict[str, object]:
        """The changes of a session's private data of CAS."""
        own: dict[str, Any] = {}
        if change.vault_ids is not None:
            await self._check_vaults(view.owner, change.vault_ids)
            own["vault_ids"] = change.vault_ids
        if change.environment_variables is not None:
            own[m.SECRETS] = read_variables(change.environment_variables)
            environment_id = view.private(self.context.dialect).get("environment_id") or DEFAULT_ENVIRONMENT
            with suppress(NotFound):  # a deleted one has no rules
                if (await find_environment(self.context, view.owner, environment_id)).body["config"][
                    "type"
                ] == SELF_HOSTED:
                    refuse_variables(own[m.SECRETS])
        return own

    def _changed(self, view: m.SessionView, given: dict[str, str | None]) -> dict[str, Any]:
        return m.public_metadata(updated_metadata(self.context, view.shown_metadata, given))

    @Answers(SESSION)
    async def archive(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        view = await self.context.sessions.close(view.owner, view.session_id, m.CloseReason.ARCHIVED)
        with self.context.committed():
            return json_response(await self.handlers.shown(view))

    @Answers("session.deleted")
    async def delete(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        await self.context.sessions.delete(view.owner, view.session_id)
        with self.context.committed():
            await self.handlers.mounts(view).clear()
        return json_response(self.context.table.object("session.deleted", session_id=view.session_id))

    @Answers("session.canceled", others={202: "session.canceled"})
    async def cancel(self, request: web.Request) -> web.Response:
        view = await self.handlers.session(request)
        runs = view.status in (m.SessionStatus.RUNNING, m.SessionStatus.SUSPENDED)
        if runs:
            with session_errors(view.session_id):
                await self.context.sessions.submit(view.owner, view.session_id, [m.Interrupt()])
        return json_response(
            self.context.table.object("session.canceled", session_id=view.session_id), 202 if runs else 200
        )


FIXED_AGENT_FIELDS = ("model", "system", "skills", "name", "description")
"""A session keeps these as they were when it was made."""


class AgentUpdate(NamedTuple):
    """Settings to go on with, and the agent as clients see it from now on."""

    settings: m.Configure
    snapshot: JsonObject


async def agent_update(handlers: HandlerContext, view: m.SessionView, given: dict[str, object]) -> AgentUpdate:
    """Change the named fields; a running turn goes on as it is."""
    fixed = next((word for word in FIXED_AGENT_FIELDS if word in given), None)
    if fixed is not None:
        raise Invalid(f"agent.{fixed}: a session keeps what it was made with; tools and mcp_servers can change",
                      param=f"agent.{fixed}")
    if view.status is m.SessionStatus.RUNNING:
        raise Conflict(BUSY_MESSAGE)
    body = validate(AgentFields, given, "agent")
    handlers.context.check_addresses(body.addresses("agent."))
    settings = view.settings
    if body.tools is not None:
        tools = server_tools(body.tools, handlers.card(view))
        settings = replace(settings, tools=tools, client_tools=client_tools(body.tools))
    changes = body.model_dump(include={"tools", "mcp_servers"}, exclude_none=True, exclude_unset=True)
    if "mcp_servers" in changes:
        settings = replace(settings, mcp_servers=tuple(changes["mcp_servers"]))
    return AgentUpdate(m.Configure(settings=settings), {**await handlers.agent(view), **changes})


def private_metadata(view: m.SessionView, dialect: str, changes: dict[str, object]) -> dict[str, object]:
    """The part of the metadata that no client is shown, with these changes in it."""
    private = view.metadata.get(m.PRIVATE) or {}
    return {m.PRIVATE: {**private, dialect: {**view.private(dialect), **changes}}}
