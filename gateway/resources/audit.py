"""Sessions and resources whose changes are written into the audit log, with the caller who makes them."""

from collections.abc import Callable, Sequence

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import Audit, Caller, Resource, Resources, SessionService

Who = Callable[[], Caller | None]
"""The caller of the current request; None where the server does something by itself."""


class AuditTrail:
    """Writes down what callers do; what the server does by itself is not written down."""

    def __init__(self, audit: Audit, who: Who) -> None:
        self._audit = audit
        self._who = who

    def write(self, event: str, target: str) -> None:
        if (caller := self._who()) is not None:
            self._audit(event, caller, target)


class AuditedResources:
    """The store of resources, as the handlers of dialects use it."""

    def __init__(self, resources: Resources, audit: Audit, who: Who) -> None:
        self._resources = resources
        self._trail = AuditTrail(audit, who)
        self.get, self.versions, self.list = resources.get, resources.versions, resources.list
        self.kinds_in_use, self.owners = resources.kinds_in_use, resources.owners
        self.with_terms, self.ranked, self.amend = resources.with_terms, resources.ranked, resources.amend

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = None, parent: str = "",
        resource_id: str | None = None, most: int | None = None, most_below: int | None = None,
    ) -> Resource:
        made = await self._resources.create(
            kind, owner, body, secrets=secrets, parent=parent, resource_id=resource_id, most=most,
            most_below=most_below,
        )
        self._trail.write(f"{kind}.created", made.resource_id)
        return made

    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        changed = await self._resources.update(kind, owner, resource_id, body, secrets=secrets, expected=expected)
        self._trail.write(f"{kind}.updated", resource_id)
        return changed

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        archived = await self._resources.archive(kind, owner, resource_id)
        self._trail.write(f"{kind}.archived", resource_id)
        return archived

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        await self._resources.delete(kind, owner, resource_id)
        self._trail.write(f"{kind}.deleted", resource_id)


class AuditedSessions:
    """The session service, as the handlers of dialects use it; the messages of a session are in the session's log."""

    def __init__(self, sessions: SessionService, audit: Audit, who: Who) -> None:
        self._sessions = sessions
        self._trail = AuditTrail(audit, who)
        self.get, self.find_by_id, self.active, self.list = (
            sessions.get, sessions.find_by_id, sessions.active, sessions.list)
        self.find, self.heads, self.head, self.records = (
            sessions.find, sessions.heads, sessions.head, sessions.records)
        self.created_between = sessions.created_between
        self.reserve_stream, self.subscribe, self.read = sessions.reserve_stream, sessions.subscribe, sessions.read
        self.resume_place = sessions.resume_place
        self.check_turn, self.submit, self.client_left, self.replace_backend = (
            sessions.check_turn, sessions.submit, sessions.client_left, sessions.replace_backend)

    async def create(
        self, owner: str, agent: str, *, settings: m.Settings = m.Settings(), history: Sequence[m.SeedMessage] = (),  # noqa: B008
        title: str | None = None, metadata: JsonObject | None = None,
    ) -> m.SessionView:
        view = await self._sessions.create(
            owner, agent, settings=settings, history=history, title=title, metadata=metadata)
        self._trail.write("session.created", view.session_id)
        return view

    async def import_session(
        self, owner: str, records: Sequence[m.Record], *, session_id: str | None = None,
    ) -> m.SessionView:
        view = await self._sessions.import_session(owner, records, session_id=session_id)
        self._trail.write("session.imported", view.session_id)
        return view

    async def update(
        self, owner: str, session_id: str, *, title: str | None = None, metadata: JsonObject | None = None,
        agent: str | None = None,
    ) -> m.SessionView:
        view = await self._sessions.update(owner, session_id, title=title, metadata=metadata, agent=agent)
        self._trail.write("session.updated", session_id)
        return view

    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        view = await self._sessions.close(owner, session_id, reason)
        self._trail.write("session.closed", session_id)
        return view

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> m.SessionView:
        view = await self._sessions.rewind(owner, session_id, to_seq, reason)
        self._trail.write("session.rewound", session_id)
        return view

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        view = await self._sessions.archive_scope(owner, session_id, scope_id)
        self._trail.write("scope.archived", f"{scope_id} of {session_id}")
        return view

    async def post_event(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        """Post something beside the conversation, such as a change of the files of the session."""
        view = await self._sessions.post_event(owner, session_id, event)
        self._trail.write(event.topic, session_id)
        return view

    async def delete(self, owner: str, session_id: str) -> None:
        await self._sessions.delete(owner, session_id)
        self._trail.write("session.deleted", session_id)
