"""What a backend says in its turn: heard to the end and put into the session's log, lawful things only."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from gateway.errors import BackendFailed
from gateway.model import (
    BACKEND_EVENTS,
    ROOT,
    AnyEvent,
    BlockDelta,
    GrammarError,
    MessageEnded,
    ScopeOpened,
    ScopeStatus,
    ScopeStatusChanged,
    SessionUpdated,
    StopReason,
)
from gateway.ports import Scoped, Telling

from .writable import is_text, named, writable

if TYPE_CHECKING:
    from .session import Session
    from .turn import TurnRun

BREATH = 32
"""After so many events in a row a turn lets others run, so that a burst reaches its readers while it lasts."""
LET_GO_SECONDS = 10.0
"""How long a backend may take to clean up after its turn has ended."""

_NOT_AN_END = (StopReason.TOOL_USE, StopReason.NEEDS_INPUT)


class TurnOver(Exception):
    """The turn has ended; nothing said after that counts."""


async def listen(run: "TurnRun", stream: AsyncGenerator[Telling, None]) -> None:
    """Take in all that is said, up to the end."""
    spoken, breath, most = 0, BREATH, run.session.house.limits.turn_events
    say_delta, turn_id = run.session.say_delta, run.turn_id
    async for telling in stream:
        if run.over:
            raise TurnOver
        spoken += len(telling) if type(telling) is list else 1
        if spoken > most:
            raise BackendFailed(f"The agent said more than {most} things in one turn.")
        if run.past is not None:
            pass  # it was said before the server stopped
        elif type(telling) is BlockDelta and is_text(telling.delta):
            say_delta(telling, turn_id)
        else:
            _tell(run, telling if type(telling) is list else [telling])
        if spoken >= breath:
            breath = spoken + BREATH
            await asyncio.sleep(0)
    run.complete()


async def let_go(stream: AsyncGenerator[Telling, None]) -> None:
    """Have a backend that was not heard to the end clean up."""
    async with asyncio.timeout(LET_GO_SECONDS):
        await stream.aclose()


def _tell(run: "TurnRun", told: list[Any]) -> None:
    """Words that follow each other are taken together."""
    session, turn_id, words = run.session, run.turn_id, list[BlockDelta]()
    for said in told:
        if type(said) is BlockDelta and is_text(said.delta):
            words.append(said)
            continue
        if words:
            session.say_words(words, turn_id)
            words = []
        event, scope_id = (said.event, named(said.scope_id)) if isinstance(said, Scoped) else (said, ROOT)
        event = _spoken(event)
        for one in with_status(session, event, scope_id) if scope_id != ROOT else (event,):
            session.say(one, scope_id, turn_id)
        if type(event) is MessageEnded:
            _take_stock(run, event, scope_id)
    if words:
        session.say_words(words, turn_id)


def with_status(session: "Session", event: AnyEvent, scope_id: str) -> tuple[AnyEvent, ...]:
    """The event with what its sub-agent's status lacks: it runs once it is opened, and is idle before it ends."""
    if type(event) is ScopeOpened:
        return event, ScopeStatusChanged(status=ScopeStatus.RUNNING)
    if type(event) is not ScopeStatusChanged or scope_id not in session.grammar.scopes:
        return (event,)
    scope = session.view.scopes[scope_id]
    if (event.status, event.stop_reason) == (scope.status, scope.stop_reason):
        return ()
    if event.status is ScopeStatus.ENDED and scope.status is not ScopeStatus.IDLE:
        return ScopeStatusChanged(status=ScopeStatus.IDLE, stop_reason=event.stop_reason), event
    return (event,)


def _take_stock(run: "TurnRun", event: MessageEnded, scope_id: str) -> None:
    run.usage += event.usage
    if scope_id == ROOT:
        run.stop_reason = StopReason.END_TURN if event.stop_reason in _NOT_AN_END else event.stop_reason


def _spoken(event: AnyEvent) -> AnyEvent:
    """An agent may say anything; only events of a backend, with fields that can be written and read, get further."""
    kind = type(event)
    if kind not in BACKEND_EVENTS:
        raise GrammarError(f"{getattr(kind, 'name', kind.__name__)} is not a backend's to say")
    if isinstance(event, ScopeStatusChanged) and event.status is ScopeStatus.ARCHIVED:
        raise GrammarError("to archive a sub-agent is not a backend's to say")
    if isinstance(event, SessionUpdated) and event.agent is not None:
        raise GrammarError("which agent a session has is not a backend's to say")
    return writable(event)
