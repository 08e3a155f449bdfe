"""CAS's HTTP handlers for sessions and what is mounted into them: each parses, asks the house, answers."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import Any

from aiohttp import web

from gateway.errors import Conflict, Invalid, NotFound
from gateway.model import PRIVATE, SECRETS, CloseReason, Interrupt, SessionStatus, SessionView, shown
from gateway.web import OWNER, Context, Idempotency, checked, limited, read_as, reply

from . import inbound
from .catalog import agent_snapshot, catalog_routes, check_memory_store, check_vault, environment_of
from .catalog_environments import DEFAULT, found_environment
from .desk import Desk, spoken
from .filters import between, words
from .mounts import Mount, check_paths, mount_of, shown_mount
from .paging import Listed, asked_of, flag, listed, page_reply
from .routes_events import event_routes
from .session_agent import change_of, kept_with
from .variables import refuse_variables, variables_of
from .views import status
from .wire import Anything, MetadataWhole, NewSession, ResourceChange, SessionChange

SELF = "self_hosted"
CHANGEABLE = "title, metadata, agent, environment_variables and vault_ids can change, and resources under …/resources"
Row = tuple[int, SessionView]
"""A session and its place in the list."""


def routes(context: Context) -> Iterable[web.RouteDef]:
    """Everything under the mount, and again under its `/v1`; a keyed request is carried out once under either."""
    once, desk = Idempotency(context.answers), Desk(context)
    own = [
        route for at in (context.mount, f"{context.mount}/v1")
        for route in (*_session_routes(SessionRoutes(desk), at), *event_routes(desk, at))
    ]
    return limited([*once.routes(own), *catalog_routes(context, once)], lambda: context.settings.body_bytes)


def _session_routes(cas: "SessionRoutes", at: str) -> list[web.RouteDef]:
    one = f"{at}/sessions/{{session}}"
    return [
        web.post(f"{at}/sessions", cas.create),
        web.get(f"{at}/sessions", cas.listed),
        web.get(one, cas.get),
        web.post(one, cas.update),
        web.put(one, cas.update),
        web.delete(one, cas.delete),
        web.post(f"{one}/archive", cas.archive),
        web.post(f"{one}/cancel", cas.cancel),
        web.post(f"{one}/resources", cas.mount),
        web.get(f"{one}/resources", cas.mounts),
        web.get(f"{one}/resources/{{resource}}", cas.mounted),
        web.post(f"{one}/resources/{{resource}}", cas.remount),
        web.delete(f"{one}/resources/{{resource}}", cas.unmount),
    ]


class SessionRoutes:
    """One method per route."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.house = desk.house

    # -- making one -----------------------------------------------------------------------------------------------

    async def create(self, request: web.Request) -> web.Response:
        body = await read_as(request, NewSession)
        owner, house = request[OWNER], self.house
        variables, mounts = variables_of(body.environment_variables), await self._mounts(owner, body)
        choice = await agent_snapshot(house, owner, body.agent)
        inbound.check_first(body.initial_events or [], house.agent(choice.agent), house.table)
        await self.desk.check_sources(owner, body.initial_events or [], "initial_events")
        own = await self._environment(owner, body, variables) | {
            "agent": choice.snapshot, "agent_id": choice.agent_id, "agent_version": choice.version,
            SECRETS: variables, "vault_ids": body.vault_ids or [],
            "memory_store_ids": body.memory_store_ids or [], "incremental": bool(body.incremental_streaming_enabled),
        }

        async def undo_environment() -> None:
            if isinstance(body.environment, dict):  # it was described, and made for this session
                await house.resources.delete("environment", owner, own["environment_id"])

        async with house.provisional(undo_environment):
            view = await house.sessions.create(
                owner, choice.agent, settings=choice.settings, title=body.title,
                metadata={**(body.metadata or {}), PRIVATE: {house.dialect: own}},
            )
            return reply(await self._begun(view, mounts, body), 201)

    async def _mounts(self, owner: str, body: NewSession) -> list[Mount]:
        await self._check_vaults(owner, body.vault_ids or [])
        for store_id in body.memory_store_ids or []:
            await check_memory_store(self.house, owner, store_id)
        given = enumerate(body.resources or [])
        mounts = [await mount_of(self.house, owner, one, f"resources.{number}") for number, one in given]
        check_paths(mounts)
        return mounts

    async def _check_vaults(self, owner: str, vault_ids: Sequence[str]) -> None:
        for vault_id in vault_ids:
            try:
                await check_vault(self.house, owner, vault_id)
            except Invalid as error:
                raise Invalid(f"vault_ids: {error.message}", param="vault_ids") from None

    async def _environment(self, owner: str, body: NewSession, variables: dict[str, str]) -> dict[str, Any]:
        """An environment that is described here is made last, when nothing can be refused any more."""
        inline = body.environment.get("config") if isinstance(body.environment, dict) else None
        if isinstance(inline, dict) and inline.get("type") == SELF:
            refuse_variables(variables)
        chosen = await environment_of(self.house, owner, body.model_dump(include={"environment_id", "environment"}))
        if chosen.self_hosted:
            refuse_variables(variables)
        return {"environment_id": chosen.environment_id}

    async def _begun(self, view: SessionView, mounts: Sequence[Mount], body: NewSession) -> Any:
        async def undo() -> None:
            await self.desk.mounts(view).clear()
            await self.house.sessions.delete(view.owner, view.session_id)

        async with self.house.provisional(undo):
            for mount in mounts:
                await self.desk.mounts(view).add(mount)
            if body.initial_events:
                commands = inbound.commands_of(body.initial_events, view, self.desk.card(view), self.house.table)
                await self.house.sessions.submit(view.owner, view.session_id, commands)
        with self.house.taken():
            return await self.desk.shown(view)

    # -- reading --------------------------------------------------------------------------------------------------

    async def get(self, request: web.Request) -> web.Response:
        return reply(await self.desk.shown(await self.desk.session(request)))

    async def listed(self, request: web.Request) -> web.Response:
        page = await self._page(request)
        return await page_reply(self.house.table, page, [await self.desk.shown(view) for _, view in page.items])

    async def _view(self, owner: str, session_id: str) -> SessionView:
        """As it is; one that was deleted since the list was made is shown as such, and by nobody."""
        try:
            return await self.house.sessions.get(owner, session_id)
        except NotFound:
            return SessionView(session_id=session_id, closed=CloseReason.DELETED)

    async def _page(self, request: web.Request) -> Listed[Row]:
        owner, sessions, query = request[OWNER], self.house.sessions, request.query
        statuses, agents, in_time = words(query, "statuses", "status"), words(query, "agent_id"), between(query)
        archived = flag(query, "include_archived")

        async def fetch(**window: Any) -> Sequence[Row]:
            heads = await sessions.heads(owner, **window)
            return [(head.ordinal, await self._view(owner, head.session_id)) for head in heads]

        async def find(session_id: str) -> Row:
            return (await sessions.head(owner, session_id)).ordinal, await sessions.get(owner, session_id)

        def keep(row: Row) -> bool:
            view = row[1]
            return view.closed is not CloseReason.DELETED and (
                (archived or view.closed is not CloseReason.ARCHIVED) and in_time(view.created_at)
                and (not statuses or status(self.house.table, view) in statuses)
                and (not agents or self.desk.agent_id(view) in agents)
            )

        return await listed(asked_of(query), fetch, place_of=lambda row: row[0], find=find, keep=keep)

    # -- changing -------------------------------------------------------------------------------------------------

    async def update(self, request: web.Request) -> web.Response:
        view, change = await self.desk.session(request), await read_as(request, SessionChange)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        if change.fixed is not None:
            raise Invalid(f"{change.fixed}: an update cannot change it; {CHANGEABLE}", param=change.fixed)
        metadata = None if change.metadata is None else self._changed(view, change.metadata)
        own = await self._own_changes(view, change)
        if change.agent is not None:
            agent = await change_of(self.desk, view, change.agent)
            await self.house.sessions.submit(view.owner, view.session_id, [agent.settings])
            own["agent"] = agent.snapshot
        if own:
            held = view.shown_metadata if metadata is None else metadata
            metadata = held | kept_with(view, self.house.dialect, own)
        with self.house.taken() if change.agent is not None else nullcontext():
            if change.title is not None or metadata is not None:
                await self.house.sessions.update(view.owner, view.session_id, title=change.title, metadata=metadata)
        with self.house.taken():
            return reply(await self.desk.shown(view))

    async def _own_changes(self, view: SessionView, change: SessionChange) -> dict[str, Any]:
        """What changes of that part of a session that only this dialect has."""
        own: dict[str, Any] = {}
        if change.vault_ids is not None:
            await self._check_vaults(view.owner, change.vault_ids)
            own["vault_ids"] = change.vault_ids
        if change.environment_variables is not None:
            own[SECRETS] = variables_of(change.environment_variables)
            environment_id = view.private(self.house.dialect).get("environment_id") or DEFAULT
            with suppress(NotFound):  # one that was deleted since has no rules any more
                if (await found_environment(self.house, view.owner, environment_id)).body["config"]["type"] == SELF:
                    refuse_variables(own[SECRETS])
        return own

    def _changed(self, view: SessionView, given: dict[str, str | None]) -> dict[str, Any]:
        old = view.shown_metadata if self.house.settings.metadata == "merge" else {}
        new = {key: value for key, value in {**old, **given}.items() if value is not None}
        return shown(checked(MetadataWhole, {"metadata": new}).metadata)

    async def archive(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        view = await self.house.sessions.close(view.owner, view.session_id, CloseReason.ARCHIVED)
        with self.house.taken():
            return reply(await self.desk.shown(view))

    async def delete(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        await self.house.sessions.delete(view.owner, view.session_id)
        with self.house.taken():
            await self.desk.mounts(view).clear()
        return reply(self.house.table.object("session.deleted", session_id=view.session_id))

    async def cancel(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        runs = view.status in (SessionStatus.RUNNING, SessionStatus.SUSPENDED)
        if runs:
            with spoken(view.session_id):
                await self.house.sessions.submit(view.owner, view.session_id, [Interrupt()])
        return reply(self.house.table.object("session.canceled", session_id=view.session_id), 202 if runs else 200)

    # -- what is mounted ------------------------------------------------------------------------------------------

    async def mount(self, request: web.Request) -> web.Response:
        view, given = await self.desk.session(request), await read_as(request, Anything)
        if view.closed is not None:
            raise Conflict(f"Session '{view.session_id}' is {view.closed} and cannot be changed.")
        mount = await mount_of(self.house, view.owner, given.model_dump())
        return reply(shown_mount(self.house.table, await self.desk.mounts(view).add_alone(mount)), 201)

    async def mounts(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        rows = await self.desk.mounts(view).all()
        page = await self.desk.page_of(
            request, rows, place_of=lambda row: row.ordinal, id_of=lambda row: row.resource_id,
        )
        return await page_reply(self.house.table, page, [shown_mount(self.house.table, row) for row in page.items])

    async def mounted(self, request: web.Request) -> web.Response:
        view = await self.desk.session(request)
        found = await self.desk.mounts(view).get(request.match_info["resource"])
        return reply(shown_mount(self.house.table, found))

    async def remount(self, request: web.Request) -> web.Response:
        """Renew the token of a repository; nothing else of what is mounted can change."""
        view, change = await self.desk.session(request), await read_as(request, ResourceChange)
        mounts, mount_id = self.desk.mounts(view), request.match_info["resource"]
        return reply(shown_mount(self.house.table, await mounts.renew(mount_id, change.authorization_token)))

    async def unmount(self, request: web.Request) -> web.Response:
        view, mount_id = await self.desk.session(request), request.match_info["resource"]
        await self.desk.mounts(view).remove(mount_id)
        return reply(self.house.table.object("resource.deleted", id=mount_id))
