"""Results that a client has handed in while its turn waits for others: said, and the agent has not had them yet."""

from collections.abc import AsyncIterator

from gateway.model import (
    ROOT,
    Entry,
    InputAccepted,
    InputRequested,
    Record,
    ReturnResult,
    Role,
    SessionStatus,
    SessionView,
    ToolOrigin,
)
from gateway.web import Context

PAGE = 500


async def handed_in(house: Context, view: SessionView) -> list[Entry]:
    """As the tool messages that they will be when the turn goes on, in the order in which they came."""
    if view.status is not SessionStatus.SUSPENDED:
        return []
    calls: dict[str, str] = {}
    results: list[Entry] = []
    async for record in _of_turn(house, view):
        event = record.event
        if isinstance(event, InputRequested) and event.call_id is not None and record.scope_id == ROOT:
            calls[event.request_id] = event.call_id
        elif isinstance(event, InputAccepted) and isinstance(event.command, ReturnResult):
            results += _results(record, event.command, calls)
    return [result for result in results if result.call_id in view.calls]


async def _of_turn(house: Context, view: SessionView) -> AsyncIterator[Record]:
    """What happened since the turn began or went on, up to what the view has seen."""
    after = max(0, view.begun_at - 1)
    while page := await house.sessions.records(view.owner, view.session_id, after, PAGE):
        for record in page:
            if record.seq > view.head:
                return
            yield record
        after = page[-1].seq


def _results(record: Record, command: ReturnResult, calls: dict[str, str]) -> list[Entry]:
    call_id = calls.get(command.request_id)
    return [] if call_id is None else [Entry(
        role=Role.TOOL, content=command.content, seq=record.seq, at=record.at, turn_id=record.turn_id,
        call_id=call_id, origin=ToolOrigin.CLIENT, is_error=command.is_error,
    )]
