"""Import: the records of another session are checked like new events, and become the records of a new session."""

from collections.abc import Sequence

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import GatewayError, Invalid
from gateway.time_slices import sliced

from .runtime import SessionWriter
from .settings_validation import validate_settings

EVENTS_BETWEEN_TURNS = (
    m.SessionCreated,
    m.SessionUpdated,
    m.SessionCompacted,
    m.SessionRewound,
    m.InputAccepted,
    m.NoticePosted,
    m.CustomEvent,
    m.ScopeStatusChanged,
    m.FaultRaised,
)
"""Events that may belong to no turn."""


async def import_records(session: SessionWriter, owner: str, records: Sequence[m.Record]) -> list[m.Record]:
    """Apply the records to the new session, and return them as its own; raises `Invalid` at the first wrong record."""
    if records and isinstance(records[-1].event, m.SessionClosed):
        records = records[:-1]  # the imported session is open, even if the other session was closed
    if not records or not isinstance(records[0].event, m.SessionCreated):
        raise Invalid("the records do not begin with a session")
    imported = []
    async for some in sliced(records):
        for record in some:
            try:
                imported.append(_import_record(session, owner, record))
            except (m.GrammarError, GatewayError) as error:
                raise Invalid(f"record {record.seq} cannot be taken over: {error}") from None
    if session.view.status is not m.SessionStatus.IDLE:
        raise Invalid("the records end in the middle of a turn")
    return imported


def _import_record(session: SessionWriter, owner: str, record: m.Record) -> m.Record:
    view, event = session.view, record.event
    if record.seq != view.head + 1:
        raise Invalid(f"it should be number {view.head + 1}")
    if isinstance(event, m.SessionClosed) or (isinstance(event, m.SessionCreated) and view.head):
        raise Invalid(f"{event.name} has no place there")
    if record.turn_id is None and not isinstance(event, EVENTS_BETWEEN_TURNS):
        raise Invalid(f"{event.name} belongs to no turn")
    if isinstance(event, m.SessionRewound) and event.to_seq >= record.seq:
        raise Invalid("nothing is rewound to what comes later")
    ours = _reowned(session, owner, record)
    session.grammar.check(ours.event, ours.scope_id)
    m.apply(view, ours)
    return ours


def _reowned(session: SessionWriter, owner: str, record: m.Record) -> m.Record:
    """The record with the new owner, settings that fit the agent here, and a time that is not in the future."""
    event = replace(record.event, owner=owner) if isinstance(record.event, m.SessionCreated) else record.event
    card = session.runtime.card(event.agent if isinstance(event, m.SessionCreated) else session.view.agent)
    at = min(max(record.at, session.view.at), session.runtime.clock())
    ours = replace(record, session_id=session.view.session_id, event=event, at=at)
    return m.with_settings(ours, lambda settings: validate_settings(card, settings))
