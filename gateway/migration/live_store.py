"""Stores imported sessions through the session service of a server, beside the clients that use it."""

from collections.abc import Sequence
from contextlib import suppress

import gateway.model as m
from gateway.errors import Conflict, GatewayError, Invalid, NotFound, TooLarge
from gateway.ports import EventLog, ManagedSessionService

from .importer import StoredSession
from .past_records import ImportMark


class LiveSessionStore:
    """See `SessionStore`. What a client has continued stays, also if the client does so at this moment."""

    def __init__(self, sessions: ManagedSessionService, event_log: EventLog) -> None:
        self._sessions, self._log = sessions, event_log

    async def find(self, session_id: str) -> StoredSession | None:
        head, first = await self._log.head(session_id), await self._log.read(session_id, limit=1)
        return StoredSession(head.owner, head.head, ImportMark.of(first[0])) if head is not None and first else None

    async def store(self, sessions: Sequence[list[m.Record]]) -> Sequence[GatewayError | None]:
        try:
            return [await self._store(records) for records in sessions]
        finally:
            await self._sessions.release()

    async def _store(self, records: list[m.Record]) -> GatewayError | None:
        created, session_id = records[0].event, records[0].session_id
        assert isinstance(created, m.SessionCreated), "the records begin with a session"
        found = await self.find(session_id)
        if found is not None and not found.may_be_replaced(records):
            return Conflict(f"session '{session_id}' is here already")
        try:
            if found is not None:
                with suppress(NotFound):  # another import replaces it
                    await self._sessions.delete_unchanged(found.owner, session_id, found.head)
            await self._sessions.import_session(created.owner, records, session_id=session_id)
        except (Conflict, Invalid, TooLarge) as error:
            return error
        except GatewayError:
            found = await self.find(session_id)
            if found is None or found.may_be_replaced(records):
                raise
            return Conflict(f"another import has stored session '{session_id}'")
        return None
