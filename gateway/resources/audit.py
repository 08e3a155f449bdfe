"""Sessions and resources whose changes are written into the audit log, with the caller who makes them."""

from collections.abc import Callable, Sequence
from typing import Any

import gateway.model as m
from gateway.ports import Caller, Resource, Resources, SessionService

Audit = Callable[[str, Caller | None, str], None]
Who = Callable[[], Caller | None]


class AuditedResources:
    """The store, as the handlers of dialects use it; what the server does by itself is not written down."""

    def __init__(self, resources: Resources, audit: Audit, who: Who) -> None:
        self._resources = resources
        self._audit = audit
        self._who = who
        self.get, self.versions, self.list = resources.get, resources.versions, resources.list

    async def create(self, kind: str, owner: str, body: dict[str, Any], **given: Any) -> Resource:
        made = await self._resources.create(kind, owner, body, **given)
        self._note(f"{kind}.created", made.resource_id)
        return made

    async def update(
        self, kind: str, owner: str, resource_id: str, body: dict[str, Any], *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        changed = await self._resources.update(kind, owner, resource_id, body, secrets=secrets, expected=expected)
        self._note(f"{kind}.updated", resource_id)
        return changed

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        archived = await self._resources.archive(kind, owner, resource_id)
        self._note(f"{kind}.archived", resource_id)
        return archived

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        await self._resources.delete(kind, owner, resource_id)
        self._note(f"{kind}.deleted", resource_id)

    def _note(self, event: str, target: str) -> None:
        if (caller := self._who()) is not None:
            self._audit(event, caller, target)


class AuditedSessions:
    """The session service, as the handlers of dialects use it; what is said in a session is in its own log."""

    def __init__(self, sessions: SessionService, audit: Audit, who: Who) -> None:
        self._sessions = sessions
        self._audit = audit
        self._who = who

    def __getattr__(self, name: str) -> Any:
        """Whatever changes no session is the service's own."""
        return getattr(self._sessions, name)

    async def create(self, owner: str, agent: str, **given: Any) -> m.SessionView:
        view = await self._sessions.create(owner, agent, **given)
        self._note("session.created", view.session_id)
        return view

    async def adopt(self, owner: str, records: Sequence[m.Record]) -> m.SessionView:
        view = await self._sessions.import_session(owner, records)
        self._note("session.imported", view.session_id)
        return view

    async def update(self, owner: str, session_id: str, **given: Any) -> m.SessionView:
        view = await self._sessions.update(owner, session_id, **given)
        self._note("session.updated", session_id)
        return view

    async def close(self, owner: str, session_id: str, reason: m.CloseReason) -> m.SessionView:
        view = await self._sessions.close(owner, session_id, reason)
        self._note("session.closed", session_id)
        return view

    async def rewind(self, owner: str, session_id: str, to_seq: int, reason: str | None = None) -> m.SessionView:
        view = await self._sessions.rewind(owner, session_id, to_seq, reason)
        self._note("session.rewound", session_id)
        return view

    async def archive_scope(self, owner: str, session_id: str, scope_id: str) -> m.SessionView:
        view = await self._sessions.archive_scope(owner, session_id, scope_id)
        self._note("scope.archived", f"{scope_id} of {session_id}")
        return view

    async def tell(self, owner: str, session_id: str, event: m.NoticePosted | m.CustomEvent) -> m.SessionView:
        """What has changed beside the conversation, such as files of the session."""
        view = await self._sessions.post_event(owner, session_id, event)
        self._note(event.topic, session_id)
        return view

    async def delete(self, owner: str, session_id: str) -> None:
        await self._sessions.delete(owner, session_id)
        self._note("session.deleted", session_id)

    def _note(self, event: str, target: str) -> None:
        if (caller := self._who()) is not None:
            self._audit(event, caller, target)
