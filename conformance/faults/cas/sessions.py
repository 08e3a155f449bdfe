"""Sessions of the CAS reference server: made, read, listed, changed, archived, cancelled and deleted."""

import operator
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from aiohttp import web

from conformance.faults.cas.agents import Agents
from conformance.faults.cas.front import Front, given_list, reply
from conformance.faults.cas.resources import Resources
from conformance.faults.cas.state import Body, Item, Session, State, mint, now
from conformance.faults.cas.variables import Mounts, Variables
from conformance.faults.refusal import Refusal

COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}


class Sessions:
    """Creates, shows, lists, changes, archives and deletes sessions, and mounts resources into them."""

    def __init__(
        self,
        state: State,
        front: Front,
        resources: Resources,
        agents: Agents,
        variables: Variables,
        mounts: Mounts,
    ) -> None:
        self.state = state
        self.front = front
        self.resources = resources
        self.agents = agents
        self.variables = variables
        self.mounts = mounts

    def find(self, request: web.Request) -> Session:
        name = request.match_info["id"]
        try:
            return self.state.sessions[name]
        except KeyError:
            raise Refusal(404, f"Session '{name}' was not found.") from None

    async def post_session(self, request: web.Request) -> web.StreamResponse:
        session = self.new(await self.front.read(request))
        self.state.sessions[session.view["id"]] = session
        return reply(self.shown(session), 201)

    def new(self, body: Body) -> Session:
        agent, environment = self.agent_of(body), self.environment_of(body)
        at = now()
        view = {
            "id": mint("sess"),
            "type": "session",
            "agent": deepcopy(agent),
            "agent_id": agent["id"],
            "environment_id": environment["id"],
            "status": "idle",
            "turn_status": "idle",
            "title": body.get("title") or "",
            "metadata": self.metadata(body.get("metadata") or {}),
            "resources": [self.mounts.mounted(given) for given in body.get("resources") or []],
            "vault_ids": body.get("vault_ids") or [],
            "memory_store_ids": body.get("memory_store_ids") or [],
            "environment_variables": self.variables.variables(body.get("environment_variables"), environment),
            "stats": {"active_seconds": 0, "duration_seconds": 0},
            "usage": {},
            "outcome_evaluations": [],
            "archived_at": None,
            "created_at": at,
            "updated_at": at,
        }
        return Session(view, is_incremental=bool(body.get("incremental_streaming_enabled")))

    def agent_of(self, body: Body) -> Body:
        match body.get("agent"):
            case str(name):
                return self.agents.version(name)
            case {"id": str(name)}:
                return self.agents.version(name, self.version_of(body["agent"]))
            case _:
                raise Refusal(400, "agent is required.")

    def version_of(self, reference: Body) -> int:
        return int(reference.get("version") or 0)

    def environment_of(self, body: Body) -> Body:
        match body.get("environment", body.get("environment_id")):
            case str(name):
                return self.resources.thing("environments", name)
            case {} as inline:
                return self.inline(dict(inline))
            case _:
                raise Refusal(400, "environment_id is required.")

    def inline(self, given: Body) -> Body:
        if not isinstance(given.get("config"), dict):
            raise Refusal(400, "environment.config is required.")
        named = given | {"name": self.environment_name(given)}
        return self.resources.create("environments", "env", "environment", named)

    def environment_name(self, given: Body) -> str:
        return str(given.get("name") or "").strip() or "Session Environment"

    def metadata(self, given: Body) -> Body:
        if len(given) > 16:
            raise Refusal(400, "metadata has more than 16 keys.")
        for name, value in given.items():
            if len(name) > 64 or len(str(value)) > 512:
                raise Refusal(400, f"metadata: {name} is too long.")
        return given

    def shown(self, session: Session) -> Body:
        return session.view

    async def get_session(self, request: web.Request) -> web.StreamResponse:
        return reply(self.shown(self.find(request)))

    async def get_sessions(self, request: web.Request) -> web.StreamResponse:
        views = [self.listed(session) for session in self.state.sessions.values()]
        found = [view for view in views if self.is_wanted(request, view)]
        return reply(self.front.page(request, self.ordered(request, found)))

    def listed(self, session: Session) -> Body:
        return self.shown(session)

    def ordered(self, request: web.Request, found: list[Body]) -> list[Body]:
        return found if request.query.get("order") == "asc" else found[::-1]

    def is_wanted(self, request: web.Request, view: Body) -> bool:
        agent, statuses = request.query.get("agent_id"), given_list(request, "statuses")
        return (
            (view["archived_at"] is None or request.query.get("include_archived") == "true")
            and agent in (None, view["agent_id"])
            and self.is_of_status(statuses, view)
            and self.is_of_time(request, view)
        )

    def is_of_status(self, statuses: list[str], view: Body) -> bool:
        return not statuses or view["status"] in statuses

    def is_of_time(self, request: web.Request, view: Body) -> bool:
        bounds = [(holds, request.query.get(f"created_at[{name}]")) for name, holds in COMPARISONS.items()]
        return all(bound is None or holds(view["created_at"], bound) for holds, bound in bounds)

    async def update_session(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        self.update(session, await self.front.read(request))
        return reply(self.shown(session))

    def update(self, session: Session, body: Body) -> None:
        if "title" in body:
            session.show(title=body["title"])
        if "metadata" in body:
            session.show(metadata=self.new_metadata(session, body["metadata"]))

    def new_metadata(self, session: Session, given: Body) -> Body:
        return self.metadata(given)

    async def archive_session(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        session.show(archived_at=session.view["archived_at"] or now())
        return reply(self.shown(session))

    async def delete_session(self, request: web.Request) -> web.StreamResponse:
        session = self.find(request)
        del self.state.sessions[session.view["id"]]
        if session.task is not None:
            session.task.cancel()
        self.close(session)
        return reply({"id": session.view["id"], "type": "session_deleted"})

    def close(self, session: Session) -> None:
        """End the streams of the session with the event that it is deleted."""
        at = now()
        members: dict[str, Any] = {"id": mint("evt"), "type": "session.deleted", "session_id": session.view["id"]}
        session.feed.append(Item(members | {"created_at": at, "processed_at": at}))
        session.is_closed = True
        session.wake()

    def resource(self, request: web.Request) -> Body:
        name = request.match_info["resource"]
        for resource in self.find(request).view["resources"]:
            if resource["id"] == name:
                return dict(resource)
        raise Refusal(404, f"Resource '{name}' was not found.")

    async def post_resource(self, request: web.Request) -> web.StreamResponse:
        session, resource = self.find(request), self.mounts.mounted(await self.front.read(request))
        self.attach(session, resource)
        return reply(resource, 201)

    def attach(self, session: Session, resource: Body) -> None:
        session.show(resources=[*session.view["resources"], resource])

    async def get_resources(self, request: web.Request) -> web.StreamResponse:
        return reply(self.front.page(request, self.find(request).view["resources"]))

    async def get_resource(self, request: web.Request) -> web.StreamResponse:
        return reply(self.resource(request))

    async def delete_resource(self, request: web.Request) -> web.StreamResponse:
        session, gone = self.find(request), self.resource(request)
        self.detach(session, gone)
        return reply({"id": gone["id"], "type": "session_resource_deleted"})

    def detach(self, session: Session, gone: Body) -> None:
        session.show(resources=[item for item in session.view["resources"] if item["id"] != gone["id"]])
