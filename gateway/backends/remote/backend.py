"""The remote backend: a turn here is a turn there; what is asked there is asked here, and answers go back."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any

import structlog

import gateway.model as m
from gateway.client import BackendEvents
from gateway.errors import BackendFailed, GatewayError, Interrupted
from gateway.ports import (
    BackendEvent,
    DecodedItem,
    NewRemoteSession,
    Remote,
    RemoteAsk,
    RemoteTurnEnd,
    ScopedEvent,
    Turn,
)

from .permissions import PermissionGuard, tool_settings, turn_tool_settings, with_held_calls
from .stop_reason import with_stop_reason

log = structlog.get_logger("dragoman.remote")

MAX_SESSIONS = 10_000
"""So many sessions are remembered here; for the others there is the metadata of the session."""
INTERRUPT_SECONDS = 5.0
"""How long the server is given to take note that its turn is over."""
SESSION_KEY, URL_KEY, DIALECT_KEY = "upstream_session", "upstream_url", "upstream_dialect"
"""Where a session's metadata tells which session of which server is behind it."""
METADATA_KEY = "remote"
"""Under this name the same stands in the session's private metadata."""
ASKS_KEY = "asked"
"""Beside it: what a turn waits for, where the server knows it by another word than the id of the call it is about."""
CANCELLED_RESULT = m.ReturnResult(request_id="", content="Tool call cancelled", is_error=True)
ASK_LOST = "The server that asked this cannot be reached any more under the ids it used."


class RemoteBackend:
    """Every session here has one there, opened with its first turn and remembered in the session's metadata."""

    def __init__(self, remote: Remote, dialect: str, url: str) -> None:
        self._remote, self._dialect, self._url = remote, dialect, url
        self._known: OrderedDict[str, str] = OrderedDict()

    async def close(self) -> None:
        await self._remote.close()

    async def run(self, turn: Turn) -> BackendEvents:
        session_id = self._recall(turn)
        if session_id is None:
            session_id = await self._remote.open(_opening(turn))
            yield m.SessionUpdated(metadata=self._noted(turn, session_id))
        self._remember(turn.session_id, session_id)
        stream = self._remote.start_turn(session_id, turn.command, turn_tool_settings(turn))
        async with aclosing(self._relay_turn(turn, session_id, stream)) as speech:
            async for said in speech:
                yield said

    async def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendEvents:
        """The turn waited here while the gateway stopped; it still waits there."""
        session_id, asked = self._recall(turn), _stored_asks(turn)
        if session_id is None or len(asked) != len(answers):
            raise Interrupted(ASK_LOST)
        self._remember(turn.session_id, session_id)
        for said in _client_tool_results(asked, answers):
            yield said
        stream = self._remote.answer(session_id, list(zip(asked, answers, strict=True)))
        async with aclosing(self._relay_turn(turn, session_id, stream)) as speech:
            async for said in speech:
                yield said

    # -- a turn there -------------------------------------------------------------------------------------------------

    async def _relay_turn(
        self, turn: Turn, session_id: str, stream: AsyncGenerator[DecodedItem, None]
    ) -> BackendEvents:
        """Say what is heard, ask what is asked, until the server has ended its turn."""
        over, done = False, set[str]()
        guard = None if self._remote.supports_permissions else PermissionGuard(turn)
        try:
            while not over:
                asked: list[RemoteAsk] = []
                async with aclosing(
                    with_stop_reason(stream if guard is None else with_held_calls(stream), turn.mint)
                ) as told:
                    async for heard in told:
                        if guard is not None:
                            guard.check(heard)
                        if isinstance(heard, RemoteAsk):
                            asked.append(heard)
                        elif isinstance(heard, RemoteTurnEnd):
                            over = True
                            _raise_if_failed(heard)
                        elif (said := _forwarded(heard, done)) is not None:
                            yield said
                if over:
                    return
                if not asked:
                    raise BackendFailed(f"the server at {self._url} stopped without ending its turn")
                if any(one.ref != _ask_key(one.ask)[1] for one in asked):
                    yield m.SessionUpdated(metadata=_metadata_with_asks(turn, asked))
                answers = await self._ask(turn, asked)
                for said in _client_tool_results(asked, answers):
                    yield said
                done |= {one.ask.call.call_id for one in asked if isinstance(one.ask, m.ClientToolAsk)}
                stream = self._remote.answer(session_id, list(zip(asked, answers, strict=True)))
        finally:
            if not over:
                await self._interrupt_server(session_id)

    async def _ask(self, turn: Turn, asked: Sequence[RemoteAsk]) -> list[m.Answer]:
        scopes = {one.scope_id for one in asked}
        return await turn.ask(*(one.ask for one in asked), scope_id=scopes.pop() if len(scopes) == 1 else m.ROOT)

    async def _interrupt_server(self, session_id: str) -> None:
        """The turn here is over before the one there: end that, too, within a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERRUPT_SECONDS):
                try:
                    await self._remote.interrupt(session_id)
                except GatewayError as error:
                    log.warning("remote_interrupt_failed", server=self._url, reason=error.message)

    # -- which session there ------------------------------------------------------------------------------------------

    def _noted(self, turn: Turn, session_id: str) -> dict[str, Any]:
        """The metadata with the session there: for all to see, and where no client can take it away."""
        seen = {SESSION_KEY: session_id, URL_KEY: self._url, DIALECT_KEY: self._dialect}
        private = turn.metadata.get(m.PRIVATE) or {}
        return {**turn.metadata, **seen, m.PRIVATE: {**private, METADATA_KEY: seen}}

    def _recall(self, turn: Turn) -> str | None:
        kept = (turn.metadata.get(m.PRIVATE) or {}).get(METADATA_KEY) or {}
        told = kept.get(SESSION_KEY) if kept.get(URL_KEY) == self._url else None
        return self._known.get(turn.session_id) or (told if isinstance(told, str) else None)

    def _remember(self, ours: str, theirs: str) -> None:
        self._known[ours] = theirs
        self._known.move_to_end(ours)
        if len(self._known) > MAX_SESSIONS:
            self._known.popitem(last=False)


# -- what is asked there, and answered after a restart here -----------------------------------------------------------

def _metadata_with_asks(turn: Turn, asked: Sequence[RemoteAsk]) -> dict[str, Any]:
    """The metadata with what is needed to answer by whoever has not heard the server ask."""
    private = turn.metadata.get(m.PRIVATE) or {}
    told = {"turn": turn.turn_id, "asks": [[*_ask_key(one.ask), one.ref, one.scope_id] for one in asked]}
    return {
        **turn.metadata,
        m.PRIVATE: {**private, METADATA_KEY: {**(private.get(METADATA_KEY) or {}), ASKS_KEY: told}},
    }


def _stored_asks(turn: Turn) -> list[RemoteAsk]:
    """What the turn waits for, as far as it can still be answered there."""
    told = ((turn.metadata.get(m.PRIVATE) or {}).get(METADATA_KEY) or {}).get(ASKS_KEY) or {}
    kept = told.get("asks") if told.get("turn") == turn.turn_id else None
    if kept and [(kind, call_id) for kind, call_id, _, _ in kept] == [_ask_key(ask) for ask in turn.asked]:
        return [RemoteAsk(ask=ask, ref=ref, scope_id=scope_id)
                for ask, (_, _, ref, scope_id) in zip(turn.asked, kept, strict=True)]
    return [RemoteAsk(ask=ask, ref=call.call_id) for ask in turn.asked if (call := m.call_of(ask)) is not None]


def _ask_key(ask: m.AnyAsk) -> tuple[str, str]:
    """What an ask is and what it is about: so one is told from another."""
    call = m.call_of(ask)
    return ask.kind, call.call_id if call else ""


def _forwarded(said: BackendEvent, done: set[str]) -> BackendEvent | None:
    """What is said there as it is said here: nothing of calls that have come back here already, nor of its metadata."""
    event = said.event if isinstance(said, ScopedEvent) else said
    if isinstance(event, m.ToolReturned | m.ToolStatusChanged | m.ToolOutput):
        return None if event.call_id in done else said
    if isinstance(event, m.SessionUpdated):
        return m.SessionUpdated(title=event.title) if event.title is not None else None
    return said


def _raise_if_failed(ended: RemoteTurnEnd) -> None:
    if ended.fault is not None:
        raise _RemoteFault(ended.fault)
    if ended.outcome is m.Outcome.INTERRUPTED:
        raise Interrupted("the server's turn was interrupted")
    if ended.outcome is m.Outcome.FAILED:
        raise BackendFailed("the server's turn failed")


class _RemoteFault(GatewayError):
    """The fault that a server told, told on."""

    def __init__(self, fault: m.Fault) -> None:
        super().__init__(fault.message, details=fault.details)
        self._fault = fault

    @property
    def fault(self) -> m.Fault:
        return self._fault


def _client_tool_results(asked: Sequence[RemoteAsk], answers: Sequence[m.Answer]) -> list[BackendEvent]:
    """What the client's own tools gave back; a server need not repeat what it was told."""
    said: list[BackendEvent] = []
    for one, answer in zip(asked, answers, strict=True):
        if isinstance(one.ask, m.ClientToolAsk):
            call, gave = one.ask.call, answer if isinstance(answer, m.ReturnResult) else CANCELLED_RESULT
            event = m.ToolReturned(
                call_id=call.call_id, content=gave.content, is_error=gave.is_error, origin=call.origin
            )
            said.append(event if one.scope_id == m.ROOT else ScopedEvent(one.scope_id, event))
    return said


def _opening(turn: Turn) -> NewRemoteSession:
    """A new session there knows what was said here before; the message that starts the turn is sent by itself."""
    started_by = len(turn.command.results) or 1 if isinstance(turn.command, m.SendMessage) else 1
    return NewRemoteSession(
        settings=tool_settings(turn), history=tuple(_seed(entry) for entry in turn.history[:-started_by])
    )


def _seed(entry: m.HistoryEntry) -> m.SeedMessage:
    return m.SeedMessage(role=entry.role, content=entry.content, call_id=entry.call_id)
