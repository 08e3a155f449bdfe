"""A session told elsewhere becomes one of ours: its records are checked as if they were said here, and re-owned."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import GatewayError, Invalid
from gateway.time_slices import sliced

from .settings_validation import validate_settings

if TYPE_CHECKING:
    from .session import Session

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
"""What may belong to no turn."""


async def import_records(session: "Session", owner: str, records: Sequence[m.Record]) -> list[m.Record]:
    """The records as the new session's own, which has taken them in; `Invalid` at the first that cannot be."""
    if records and isinstance(records[-1].event, m.SessionClosed):
        records = records[:-1]  # what was closed there is open here
    if not records or not isinstance(records[0].event, m.SessionCreated):
        raise Invalid("the records do not begin with a session")
    told = []
    async for some in sliced(records):
        for record in some:
            try:
                told.append(_import_record(session, owner, record))
            except (m.GrammarError, GatewayError) as error:
                raise Invalid(f"record {record.seq} cannot be taken over: {error}") from None
    if session.view.status is not m.SessionStatus.IDLE:
        raise Invalid("the records end in the middle of a turn")
    return told


def _import_record(session: "Session", owner: str, record: m.Record) -> m.Record:
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


def _reowned(session: "Session", owner: str, record: m.Record) -> m.Record:
    """With the new owner, settings that fit the agent here, and a time that is not to come."""
    event = replace(record.event, owner=owner) if isinstance(record.event, m.SessionCreated) else record.event
    card = session.runtime.card(event.agent if isinstance(event, m.SessionCreated) else session.view.agent)
    at = min(max(record.at, session.view.at), session.runtime.clock())
    ours = replace(record, session_id=session.view.session_id, event=event, at=at)
    return m.with_settings(ours, lambda settings: validate_settings(card, settings))
