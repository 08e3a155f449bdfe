"""The remote backend: a turn is a turn of another server; asks come from there, and answers go back."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress

import structlog
from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

import gateway.model as m
from gateway.backends.gateway_tools import GatewayTools, OwnCalls
from gateway.backends.tool_executor import CALL_CANCELLED
from gateway.client import AddressPolicy, BackendOutputs, SessionMemory
from gateway.errors import BackendFailed, GatewayError, Interrupted
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import (
    Addresses,
    BackendEvent,
    DecodedItem,
    NewRemoteSession,
    Remote,
    RemoteAsk,
    RemoteTurnEnd,
    ScopedEvent,
    SessionPlaces,
    Turn,
)

from .permissions import HeldCalls, PermissionGuard, tool_settings, turn_tool_settings
from .turn_reader import ItemFilter, StopReasonFilter, TurnReader

log = structlog.get_logger("dragoman.remote")

MAX_SESSIONS = 10_000
"""The server's ids of so many sessions are cached; the others are in the metadata of the sessions."""
INTERRUPT_SECONDS = 5.0
"""How long the server may take to accept an interrupt."""
SESSION_KEY = "upstream_session"
"""The key of a session's metadata that names the server's session."""
METADATA_KEY = "remote"
"""The key of the stored link in the session's private metadata."""
CANCELLED_RESULT = m.ReturnResult(request_id="", content=CALL_CANCELLED, is_error=True)
ASK_LOST = "The server that asked this cannot be reached any more under the ids it used."


class StoredAsks(Struct, frozen=True, kw_only=True):
    """The open asks of a turn; only stored if the server does not know an ask by the id of its call."""

    turn: str = ""
    asks: tuple[tuple[str, str, str, str], ...] = ()
    """The kind of each ask, the id of its call, the server's id for it, and its scope."""


MEMORIES = "memories"
"""The name of the variable that has the memories."""


class SessionLink(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The server's session that belongs to one of ours, as it is stored in the metadata of ours."""

    upstream_session: str | None = None
    upstream_url: str | None = None
    upstream_dialect: str | None = None
    asked: StoredAsks = StoredAsks()
    others: dict[str, str] = {}
    """The sessions at other servers that have run turns of this session, by URL: one that runs turns again goes on."""

    @classmethod
    def read(cls, metadata: Mapping[str, JsonValue]) -> "SessionLink":
        """The stored link; an empty one if there is none, or none that can be read."""
        private = metadata.get(m.PRIVATE)
        try:
            return convert((private.get(METADATA_KEY) if isinstance(private, dict) else None) or {}, cls)
        except ValidationError:
            return cls()

    def stored(self, metadata: Mapping[str, JsonValue]) -> JsonObject:
        """The metadata with this link in the private part, where no client can remove it."""
        private = metadata.get(m.PRIVATE)
        return {
            **metadata, m.PRIVATE: {**(private if isinstance(private, dict) else {}), METADATA_KEY: to_builtins(self)},
        }

    @property
    def public(self) -> JsonObject:
        """The fields that clients see in the metadata."""
        return {
            SESSION_KEY: self.upstream_session, "upstream_url": self.upstream_url,
            "upstream_dialect": self.upstream_dialect,
        }


class RemoteBackend:
    """Every session has one at the server, opened with its first turn and stored in the session's metadata."""

    def __init__(self, remote: Remote, dialect: str, url: str, addresses: Addresses | None = None) -> None:
        self._remote, self._dialect, self._url = remote, dialect, url
        self._addresses: Addresses = addresses or AddressPolicy()
        self._known = SessionMemory[str](MAX_SESSIONS)

    async def close(self) -> None:
        await self._remote.close()

    def run(self, turn: Turn) -> BackendOutputs:
        return self._events(turn, None)

    def resume(self, turn: Turn, answers: Sequence[m.Answer]) -> BackendOutputs:
        """Continue a turn that waited while the gateway was stopped; it still waits at the server."""
        return self._events(turn, answers)

    async def _events(self, turn: Turn, answers: Sequence[m.Answer] | None) -> BackendOutputs:
        """Relay the server's turn and its asks, until the server has ended it."""
        async with GatewayTools(turn, self._addresses, self._remote.places) as tools:
            for notice in tools.notices:
                yield notice
            session_id, calls = self._recall(turn), None
            if answers is None:
                if session_id is None:
                    session_id = await self._remote.open(_opening(turn, tools))
                    yield self._link(turn, session_id)
                elif SessionLink.read(turn.metadata).upstream_url != self._url:
                    yield self._link(turn, session_id)
                places = await self._remote.places() if turn.memories else SessionPlaces()
                settings = tools.added_to(turn_tool_settings(turn))
                there = self._remote.start_turn(session_id, _command(turn, places), settings)
            else:
                asked = _stored_asks(turn)
                if session_id is None or len(asked) != len(answers):
                    raise Interrupted(ASK_LOST)
                calls = OwnCalls.resumed(turn, tools, asked)
            self._known.put(turn.session_id, session_id)
            relay = _TurnRelay(turn, tools, has_permissions=self._remote.supports_permissions)
            try:
                while True:
                    if calls is not None and answers is not None:
                        async with aclosing(calls.run(answers)) as events_of_calls:
                            async for event in events_of_calls:
                                yield event
                        if results := _client_tool_results(calls.of_people):
                            yield results
                        relay.ignore_results(calls.answered)
                        there = self._remote.answer(session_id, calls.answered)
                    async with aclosing(TurnReader(there, *relay.filters)) as reader:
                        while items := await reader.read():
                            if events := relay.feed(items):
                                yield events
                            if relay.failure is not None:
                                raise relay.failure
                    if relay.is_over:
                        return
                    calls = OwnCalls(turn, tools, relay.take_asks())
                    if not calls:
                        raise BackendFailed(f"the server at {self._url} stopped without ending its turn")
                    people = calls.people
                    if any(one.ref != _ask_key(one.ask)[1] for one in people):
                        yield m.SessionUpdated(metadata=_with_asks(turn, people))
                    answers = await _ask(turn, people) if people else []
            finally:
                if not relay.is_over:
                    await self._interrupt_server(session_id)

    def _link(self, turn: Turn, session_id: str) -> m.SessionUpdated:
        """The change of our session's metadata that names the server's session."""
        old = SessionLink.read(turn.metadata)
        others = old.others | ({old.upstream_url: old.upstream_session}
                               if old.upstream_url and old.upstream_session else {})
        others.pop(self._url, None)
        link = SessionLink(upstream_session=session_id, upstream_url=self._url, upstream_dialect=self._dialect,
                           others=others)
        return m.SessionUpdated(metadata=link.stored({**turn.metadata, **link.public}))

    async def _interrupt_server(self, session_id: str) -> None:
        """End the server's turn, after ours has ended early."""
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERRUPT_SECONDS):
                try:
                    await self._remote.interrupt(session_id)
                except GatewayError as error:
                    log.warning("remote_interrupt_failed", server=self._url, reason=error.message)

    # -- the server's session -------------------------------------------------------------------------------------

    def _recall(self, turn: Turn) -> str | None:
        link = SessionLink.read(turn.metadata)
        stored = link.upstream_session if link.upstream_url == self._url else link.others.get(self._url)
        return self._known.get(turn.session_id) or stored


class _TurnRelay:
    """Divides the items of the server's turn: events to pass on, asks, and the end."""

    def __init__(self, turn: Turn, tools: GatewayTools, *, has_permissions: bool) -> None:
        self._tools = tools if tools.specs else None
        self._guard = None if has_permissions else PermissionGuard(turn)
        stop_reason = StopReasonFilter(turn.mint)
        self.filters: tuple[ItemFilter, ...] = (stop_reason,) if has_permissions else (HeldCalls(), stop_reason)
        self.is_over = False
        self.failure: GatewayError | None = None
        """To be raised after the events before it were emitted."""
        self._asks: list[RemoteAsk] = []
        self._answered_calls: set[str] = set()

    def feed(self, items: Sequence[DecodedItem]) -> list[BackendEvent]:
        events: list[BackendEvent] = []
        try:
            for item in items if self._tools is None else self._tools.shown(items):
                if self._guard is not None:
                    self._guard.check(item)
                if isinstance(item, RemoteAsk):
                    self._asks.append(item)
                elif isinstance(item, RemoteTurnEnd):
                    self.is_over = True
                    _raise_if_failed(item)
                elif type(item) is m.BlockDelta:
                    events.append(item)
                elif (event := self._forwarded(item)) is not None:
                    events.append(event)
        except GatewayError as error:
            self.failure = error
        return events

    def take_asks(self) -> list[RemoteAsk]:
        """The asks since the last call, which are to be answered now."""
        asks, self._asks = self._asks, []
        return asks

    def ignore_results(self, answered: Sequence[tuple[RemoteAsk, m.Answer]]) -> None:
        """The server may repeat the results of these calls, which clients have already."""
        self._answered_calls |= {one.ask.call.call_id for one, _ in answered if isinstance(one.ask, m.ClientToolAsk)}

    def _forwarded(self, item: BackendEvent) -> BackendEvent | None:
        """The event as it is emitted here; None for results of client tools, and for the server's own metadata."""
        event = item.event if isinstance(item, ScopedEvent) else item
        if isinstance(event, m.ToolReturned | m.ToolStatusChanged | m.ToolOutput):
            return None if event.call_id in self._answered_calls else item
        if isinstance(event, m.SessionUpdated):
            return m.SessionUpdated(title=event.title) if event.title is not None else None
        return item


async def _ask(turn: Turn, asked: Sequence[RemoteAsk]) -> list[m.Answer]:
    scopes = {one.scope_id for one in asked}
    return await turn.ask(*(one.ask for one in asked), scope_id=scopes.pop() if len(scopes) == 1 else m.ROOT)


# -- asks, stored for a restart of the gateway ------------------------------------------------------------------------

def _with_asks(turn: Turn, asked: Sequence[RemoteAsk]) -> JsonObject:
    """The metadata with the asks, so that they can be answered after a restart."""
    rows = tuple((*_ask_key(one.ask), one.ref, one.scope_id) for one in asked)
    link = replace(SessionLink.read(turn.metadata), asked=StoredAsks(turn=turn.turn_id, asks=rows))
    return link.stored(turn.metadata)


def _stored_asks(turn: Turn) -> list[RemoteAsk]:
    """The open asks of the turn that the server can still be sent answers to."""
    stored = SessionLink.read(turn.metadata).asked
    rows = stored.asks if stored.turn == turn.turn_id else ()
    if rows and [(kind, call_id) for kind, call_id, _, _ in rows] == [_ask_key(ask) for ask in turn.asked]:
        return [RemoteAsk(ask=ask, ref=ref, scope_id=scope_id)
                for ask, (_, _, ref, scope_id) in zip(turn.asked, rows, strict=True)]
    return [RemoteAsk(ask=ask, ref=call.call_id) for ask in turn.asked if (call := m.call_of(ask)) is not None]


def _ask_key(ask: m.AnyAsk) -> tuple[str, str]:
    """The kind of an ask and its call, which together identify it."""
    call = m.call_of(ask)
    return ask.kind, call.call_id if call else ""


def _raise_if_failed(ended: RemoteTurnEnd) -> None:
    if ended.fault is not None:
        raise _RemoteFault(ended.fault)
    if ended.outcome is m.Outcome.INTERRUPTED:
        raise Interrupted("the server's turn was interrupted")
    if ended.outcome is m.Outcome.FAILED:
        raise BackendFailed("the server's turn failed")


class _RemoteFault(GatewayError):
    """The fault of the server's turn."""

    def __init__(self, fault: m.Fault) -> None:
        super().__init__(fault.message, details=fault.details)
        self._fault = fault

    @property
    def fault(self) -> m.Fault:
        return self._fault


def _client_tool_results(answered: Sequence[tuple[RemoteAsk, m.Answer]]) -> list[BackendEvent]:
    """The results of the client's tools, which the server need not repeat."""
    events: list[BackendEvent] = []
    for one, answer in answered:
        if isinstance(one.ask, m.ClientToolAsk):
            call, gave = one.ask.call, answer if isinstance(answer, m.ReturnResult) else CANCELLED_RESULT
            event = m.ToolReturned(
                call_id=call.call_id, content=gave.content, is_error=gave.is_error, origin=call.origin
            )
            events.append(event if one.scope_id == m.ROOT else ScopedEvent(one.scope_id, event))
    return events


def _opening(turn: Turn, tools: GatewayTools) -> NewRemoteSession:
    """The settings and the history for a new session, without the message that starts the turn."""
    started_by = len(turn.command.results) or 1 if isinstance(turn.command, m.SendMessage) else 1
    return NewRemoteSession(
        settings=tools.added_to(tool_settings(turn)),
        history=tuple(_seed(entry) for entry in turn.history[:-started_by]),
    )


def _command(turn: Turn, places: SessionPlaces) -> m.SendMessage | m.Compact:
    """The command of the turn, with the memories that fit it among its variables if the server takes variables."""
    command = turn.command
    if not turn.memories or not places.variables or not isinstance(command, m.SendMessage):
        return command
    memories = [memory.content for memory in turn.memories]
    return replace(command, variables={MEMORIES: memories, **command.variables})


def _seed(entry: m.HistoryEntry) -> m.SeedMessage:
    return m.SeedMessage(role=entry.role, content=entry.content, call_id=entry.call_id)
