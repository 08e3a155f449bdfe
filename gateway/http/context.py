"""What the handlers of one dialect may use: the services of the core, and the table and the settings of the dialect."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from aiohttp import web
from pydantic import BaseModel

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.json_values import JsonObject
from gateway.ports import (
    Addresses,
    AgentCalls,
    Agents,
    Clock,
    DialectTable,
    Files,
    KeyRing,
    McpTools,
    OperatorOffers,
    Receipt,
    Replays,
    Resources,
    ResponseStore,
    SessionService,
    SettingsReload,
    StreamOptions,
    StreamSlot,
    Subscription,
    TaskStarter,
    ToolOutcome,
    ToolRunner,
    Workspaces,
)

from .backpressure import ResumedSubscription
from .metrics import Metrics
from .security import OWNER, Authenticator
from .sse import OPEN_COMMENT, PING_COMMENT, stream_sse

SettingsT = TypeVar("SettingsT", bound=BaseModel)


async def _count_nothing(owner: str, message: str) -> None:
    """Count nothing."""


class NoTools:
    """Runs nothing: the server has no tools of its own."""

    specs: Mapping[str, m.ToolSpec] = MappingProxyType({})

    async def run(self, name: str, input: JsonObject, out: Callable[[str], None]) -> ToolOutcome:
        raise NotFound(f"there is no tool '{name}'")


NO_OFFERS = OperatorOffers(docs=Path("docs"))


@dataclass(kw_only=True, slots=True)
class Context(Generic[SettingsT]):
    """The services for the routes of one dialect; a reload replaces `table`, `settings` and `agents`."""

    dialect: str
    mount: str
    sessions: SessionService
    resources: Resources
    files: Files
    workspaces: Workspaces
    answers: ResponseStore
    agents: Mapping[str, m.AgentCard]
    agent_service: Agents
    """The agents of the settings, and those that users make."""
    mcp_tools: McpTools
    """Connects to MCP servers for their tools."""
    table: DialectTable
    settings: SettingsT
    guard: Authenticator
    addresses: Addresses
    """Which addresses clients may name."""
    heartbeat: float
    send_timeout: float
    offers: OperatorOffers = NO_OFFERS
    """What the operator offers to all users."""
    clock: Clock = time.time
    keys: KeyRing | None = None
    replays: Replays | None = None
    metrics: Metrics | None = None
    tasks: TaskStarter | None = None
    """Starts scheduled tasks by hand."""
    tools: ToolRunner = field(default_factory=NoTools)
    """Runs tools outside of a conversation."""
    agent_calls: Callable[[str, str], AgentCalls] = lambda owner, agent_id: AgentCalls()
    """How often a user has called an agent since the server started."""
    reloads: SettingsReload | None = None
    """Reads the settings again; None if the server was not started from a settings file."""
    is_stopping: Callable[[], bool] = lambda: False
    """Says whether the server is about to stop."""
    count_request: Callable[[str, str], Awaitable[None]] = _count_nothing
    """(owner, what kind of message) counts a message that came over a socket; raises `RateLimited`."""
    check_stored_bytes: Callable[[str, int], None] = lambda owner, size: None
    """Raises `RateLimited` if the owner may not store so many more bytes."""
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def check_open(self) -> None:
        """Refuse new streams while the server is about to stop."""
        if self.is_stopping():
            raise Overloaded("the server is shutting down; try again when it is back")

    def check_addresses(self, named: Iterable[tuple[str, str]]) -> None:
        """Refuse the first URL that clients may not name, with its field; a `data:` URI is always allowed."""
        for field_name, url in named:
            if not url.startswith("data:"):
                self.addresses.check(url, field_name)

    async def check_message_addresses(self, named: Iterable[tuple[str, str]]) -> None:
        """Check URLs as `check_addresses` does, and resolve host names: receivers of the message may fetch them."""
        if fetched := [(field_name, url) for field_name, url in named if not url.startswith("data:")]:
            await self.addresses.check_resolved(fetched)

    def agent(self, name: str) -> m.AgentCard:
        card = self.agents.get(name)
        if card is None:
            raise NotFound(f"there is no agent '{name}'; there are {self._names()}")
        return card

    def agent_of(self, view: m.SessionView) -> m.AgentCard:
        """Return the agent of the next turn of the session; raises an error if the agent is not served any more."""
        card = self.agents.get(view.agent)
        if card is None:
            raise Conflict(f"agent '{view.agent}' of this session is not served any more; there are {self._names()}")
        return card

    def shown_agent(self, view: m.SessionView) -> m.AgentCard:
        """Return the agent of the session for readers: only its name if the agent is not served any more."""
        return self.agents.get(view.agent) or m.AgentCard(name=view.agent)

    def _names(self) -> str:
        return ", ".join(f"'{name}'" for name in self.agents)

    @contextmanager
    def committed(self) -> Iterator[None]:
        """Run this block for a request that was accepted: `Overloaded` becomes `OutcomeUnknown`."""
        try:
            yield
        except Overloaded as error:
            raise _outcome_unknown(error) from None

    @asynccontextmanager
    async def undo_if_refused(self, undo: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """Call `undo` if this block is refused, because something was made just for it."""
        try:
            yield
        except OutcomeUnknown:
            raise
        except GatewayError:
            with self.committed():
                await undo()
            raise

    def lost_turn_error(self, session_id: str, subscription: Subscription) -> GatewayError:
        """Return the error for a client whose turn was started and whose end is not known here."""
        if subscription.cut_at is not None or subscription.is_draining:
            return OutcomeUnknown(
                f"the turn was started, but its end cannot be returned here: read session '{session_id}'"
            )
        return NotFound(f"session '{session_id}' was deleted")

    @asynccontextmanager
    async def follow_turn(
        self, owner: str, session_id: str, receipt: Receipt, options: StreamOptions, place: StreamSlot | None = None,
    ) -> AsyncIterator[Subscription]:
        """Subscribe to the turn of a receipt; a client that disconnects before the turn yields is reported."""
        subscription, gone = None, True
        try:
            try:
                subscription = await self.sessions.subscribe(
                    owner, session_id, self.dialect, options, after=receipt.after, place=place)
            except Overloaded as error:
                raise _outcome_unknown(error) from None
            yield subscription
            gone = False
        finally:
            if subscription is not None:
                subscription.close()
            if gone and receipt.turn_id is not None:
                await self.sessions.client_left(owner, session_id, receipt.turn_id)

    @asynccontextmanager
    async def report_disconnect(self, owner: str, session_id: str, receipt: Receipt) -> AsyncIterator[None]:
        """Report a disconnect of the client if this block is broken off."""
        gone = True
        try:
            yield
            gone = False
        finally:
            if gone and receipt.turn_id is not None:
                await self.sessions.client_left(owner, session_id, receipt.turn_id)

    async def begin_turn(self, owner: str, session_id: str, submitting: Coroutine[object, None, Receipt]) -> Receipt:
        """Submit commands that start a turn which the client will follow.

        The handler of a client that disconnects is cancelled. What the session has accepted by then is stored all the
        same: the turn runs, and the disconnect is reported.
        """
        submitted = asyncio.ensure_future(submitting)
        try:
            return await asyncio.shield(submitted)
        except asyncio.CancelledError:
            with suppress(GatewayError):  # the client has disconnected
                receipt = await submitted
                if receipt.begun and receipt.turn_id is not None:
                    await self.sessions.client_left(owner, session_id, receipt.turn_id)
            raise

    async def stream_turn(
        self, request: web.Request, session_id: str, receipt: Receipt, options: StreamOptions, place: StreamSlot, *,
        to_the_end: bool = False, heartbeat: float | None = None, hello: str | bytes = OPEN_COMMENT,
        ping: str | bytes = PING_COMMENT,
    ) -> web.StreamResponse:
        """Stream the turn as server-sent events, until it yields or, if wanted, until it ends."""
        async with self.follow_turn(request[OWNER], session_id, receipt, options, place) as subscription:
            await asyncio.sleep(0)  # the agent starts while the response is prepared
            return await stream_sse(
                request, subscription, heartbeat=heartbeat or self.heartbeat, patience=self.send_timeout,
                until_yield=not to_the_end, until_end=to_the_end, hello=hello, ping=ping,
            )

    async def stream_session(
        self, request: web.Request, session_id: str, options: StreamOptions, *, after: int, comment: str,
        on_write: Callable[[int], None],
    ) -> web.StreamResponse:
        """Stream the events of a session after that record until the client disconnects."""
        self.check_open()
        subscription = await self.sessions.subscribe(request[OWNER], session_id, self.dialect, options, after=after)
        try:
            return await stream_sse(
                request,
                subscription,
                heartbeat=self.heartbeat,
                patience=self.send_timeout,
                hello=comment,
                ping=comment,
                on_write=on_write,
            )
        finally:
            subscription.close()

    async def stream_remaining(
        self, request: web.Request, session_id: str, options: StreamOptions, *, after: int, had: int,
    ) -> web.StreamResponse:
        """Stream the rest of the turn that starts after that record, without frames that the client has received."""
        subscription = await self.sessions.subscribe(request[OWNER], session_id, self.dialect, options, after=after)
        try:
            return await stream_sse(
                request,
                ResumedSubscription(subscription, had),
                heartbeat=self.heartbeat,
                patience=self.send_timeout,
                until_yield=True,
            )
        finally:
            subscription.close()

    async def await_turn(
        self, request: web.Request, session_id: str, receipt: Receipt, options: StreamOptions, place: StreamSlot,
    ) -> bytes:
        """Return the frames of the dialect once the turn yields."""
        async with self.follow_turn(request[OWNER], session_id, receipt, options, place) as subscription:
            bodies: list[bytes] = []
            while chunks := await subscription.chunks():
                for chunk in chunks:
                    bodies += [frame.body for frame in chunk.frames]
                    if chunk.yields:
                        return b"".join(bodies)
            raise self.lost_turn_error(session_id, subscription)


def _outcome_unknown(error: Overloaded) -> OutcomeUnknown:
    return OutcomeUnknown(f"the request was accepted, but has no result to return: {error.message}")
