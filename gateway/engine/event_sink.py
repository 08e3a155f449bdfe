"""The output of a backend: each event is checked, made serializable and appended to the log of its session."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, TypeVar

import msgspec
import orjson

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.json_values import MAX_JSON_DEPTH, JsonLimitExceeded, check_limits
from gateway.ports import BackendEvent, BackendOutput, ScopedEvent

from .recovery import TurnHistory
from .runtime import SessionWriter

EVENTS_PER_SLICE = 32
"""After so many events in a row a turn lets others run, so that a burst reaches its readers while it lasts."""
CLEANUP_SECONDS = 10.0
"""How long a backend may take to clean up after its turn has ended."""
_PAUSES = (m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)


class TurnOver(Exception):
    """The turn has ended; events that its backend yields afterwards are dropped."""


class OpenTurn(Protocol):
    """The turn whose backend yields the events."""

    usage: m.Usage
    stop_reason: m.StopReason

    @property
    def session(self) -> SessionWriter: ...
    @property
    def turn_id(self) -> str: ...
    @property
    def is_ended(self) -> bool: ...
    @property
    def recorded(self) -> TurnHistory | None:
        """The records of the turn, until its backend has come to where it was when the server stopped."""
    def complete(self) -> None:
        """The backend has yielded its last event."""
    def take_annotation(self, message_id: str) -> m.MessageAnnotated | None:
        """The memories that the turn was given, for its first message; None for every further message."""


async def consume_backend(run: OpenTurn, stream: AsyncGenerator[BackendOutput, None]) -> None:
    """Append all events of the backend, up to its end."""
    event_count, next_pause, most = 0, EVENTS_PER_SLICE, run.session.runtime.limits.turn_events
    append_delta, turn_id = run.session.append_delta, run.turn_id
    async for output in stream:
        if run.is_ended:
            raise TurnOver
        event_count += len(output) if type(output) is list else 1
        if event_count > most:
            raise BackendFailed(f"The agent sent more than {most} events in one turn.")
        if run.recorded is not None:
            pass  # the event was appended before the server stopped
        elif type(output) is m.BlockDelta and type(output.delta) is str and output.delta.isascii():
            append_delta(output, turn_id)  # five of ten events; `_append_all` looks closer at other texts
        else:
            _append_all(run, output if isinstance(output, list) else [output])
        if event_count >= next_pause:
            next_pause = event_count + EVENTS_PER_SLICE
            await asyncio.sleep(0)
    run.complete()


async def close_backend(stream: AsyncGenerator[BackendOutput, None]) -> None:
    """Let a backend that was stopped before its end clean up."""
    async with asyncio.timeout(CLEANUP_SECONDS):
        await stream.aclose()


def _append_all(run: OpenTurn, outputs: Sequence[BackendEvent]) -> None:
    """Append events of one batch; deltas that follow each other are appended in one step."""
    session, turn_id, deltas = run.session, run.turn_id, list[m.BlockDelta]()
    for output in outputs:
        if type(output) is m.BlockDelta and type(words := output.delta) is str and (
            words.isascii() or is_valid_text(words)
        ):
            deltas.append(output)
            continue
        if deltas:
            session.append_deltas(deltas, turn_id)
            deltas = []
        event, scope_id = (
            (output.event, check_scope_id(output.scope_id)) if isinstance(output, ScopedEvent) else (output, m.ROOT)
        )
        event = _check_backend_event(event)
        for one in with_scope_status(session, event, scope_id) if scope_id != m.ROOT else (event,):
            session.append(one, scope_id, turn_id)
        if type(event) is m.MessageStarted and scope_id == m.ROOT:
            if (annotation := run.take_annotation(event.message_id)) is not None:
                session.append(annotation, scope_id, turn_id)
        elif type(event) is m.MessageEnded:
            _add_usage(run, event, scope_id)
    if deltas:
        session.append_deltas(deltas, turn_id)


def with_scope_status(session: SessionWriter, event: m.AnyEvent, scope_id: str) -> tuple[m.AnyEvent, ...]:
    """The event with the changes of status it implies: a sub-agent runs once opened, and is idle before it ends."""
    if type(event) is m.ScopeOpened:
        return event, m.ScopeStatusChanged(status=m.ScopeStatus.RUNNING)
    if type(event) is not m.ScopeStatusChanged or scope_id not in session.grammar.scopes:
        return (event,)
    scope = session.view.scopes[scope_id]
    if (event.status, event.stop_reason) == (scope.status, scope.stop_reason):
        return ()
    if event.status is m.ScopeStatus.ENDED and scope.status is not m.ScopeStatus.IDLE:
        return m.ScopeStatusChanged(status=m.ScopeStatus.IDLE, stop_reason=event.stop_reason), event
    return (event,)


def _add_usage(run: OpenTurn, event: m.MessageEnded, scope_id: str) -> None:
    run.usage += event.usage
    if scope_id == m.ROOT:
        run.stop_reason = m.StopReason.END_TURN if event.stop_reason in _PAUSES else event.stop_reason


def _check_backend_event(event: m.AnyEvent) -> m.AnyEvent:
    """Check an item of an agent: only events of a backend are accepted, with fields that can be encoded."""
    kind = type(event)
    if kind not in m.BACKEND_EVENTS:
        raise m.GrammarError(f"{getattr(kind, 'name', kind.__name__)} is not an event that a backend may yield")
    if type(event) is m.ScopeStatusChanged and event.status is m.ScopeStatus.ARCHIVED:
        raise m.GrammarError("a backend may not archive a sub-agent")
    if type(event) is m.SessionUpdated and event.agent is not None:
        raise m.GrammarError("a backend may not change the agent of a session")
    return ensure_serializable(event)


W = TypeVar("W", bound=m.Event | m.Fault)


def ensure_serializable(value: W) -> W:
    """The event as the log would return it; raises `GrammarError` if the log could not store it."""
    try:
        plain = msgspec.to_builtins(value, builtin_types=(bytes,))
        try:
            written = orjson.dumps(plain)
        except TypeError:
            check_limits(plain)
            raise
        if written.count(b"{") + written.count(b"[") > MAX_JSON_DEPTH:  # few brackets cannot be nested too deep
            check_limits(plain)
        return msgspec.json.decode(written, type=type(value))
    except JsonLimitExceeded as error:
        raise m.GrammarError(f"{_name_of(value)} has a field that exceeds a limit: {error}") from None
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise m.GrammarError(f"{_name_of(value)} has a field that cannot be written: {error}") from None


def _name_of(value: m.Event | m.Fault) -> str:
    return value.name if isinstance(value, m.Event) else "a fault"


def ensure_serializable_fault(fault: m.Fault) -> m.Fault:
    """The fault without fields that cannot be encoded, so that any failure of an agent can be stored."""
    try:
        return ensure_serializable(fault)
    except m.GrammarError:
        words = str(fault.message).encode(errors="replace").decode()
        return m.Fault(code=fault.code, message=words, retryable=fault.retryable)


def check_scope_id(scope_id: str) -> str:
    """The id of a scope, which stands in every record of it."""
    if not is_valid_text(scope_id):
        raise m.GrammarError("the id of a scope is not valid text")
    return scope_id


def is_valid_text(words: object) -> bool:
    """Whether this is a string that can be written everywhere; nine events of ten need no more than this."""
    return type(words) is str and (words.isascii() or _is_unicode(words))


def _is_unicode(words: str) -> bool:
    try:
        words.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
