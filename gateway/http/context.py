"""What the handlers of one dialect may use: the house's services, and the dialect's own table and settings."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

import gateway.model as m
from gateway.errors import Conflict, GatewayError, NotFound, OutcomeUnknown, Overloaded
from gateway.ports import (
    Addresses,
    Clock,
    Files,
    KeyRing,
    Receipt,
    Replays,
    Resources,
    ResponseStore,
    SessionService,
    StreamSlot,
    Subscription,
)

from .backpressure import ResumedSubscription
from .metrics import Metrics
from .security import OWNER, Authenticator
from .sse import stream_sse


async def _count_nothing(owner: str) -> None:
    """Nothing is counted."""


@dataclass(kw_only=True, slots=True)
class Context:
    """Handed to a dialect's routes; `table` and `agents` are exchanged when the settings are read again."""

    dialect: str
    mount: str
    sessions: SessionService
    resources: Resources
    files: Files
    answers: ResponseStore
    agents: Mapping[str, m.AgentCard]
    table: Any
    settings: Any
    guard: Authenticator
    addresses: Addresses
    """Which addresses clients may name."""
    heartbeat: float
    send_timeout: float
    trust_uploads: bool = False
    """Whether files that clients upload may be an agent's configuration."""
    data: Path = Path("data")
    """The folder for what outlives the server."""
    clock: Clock = time.time
    keys: KeyRing | None = None
    replays: Replays | None = None
    metrics: Metrics | None = None
    is_stopping: Callable[[], bool] = lambda: False
    """Whether the server is about to stop."""
    count_request: Callable[[str], Awaitable[None]] = _count_nothing
    """Count what an owner asks for over a socket as a request; raises `RateLimited`."""
    check_stored_bytes: Callable[[str, int], None] = lambda owner, size: None
    """Refuse so many more bytes of an owner if that is too much; raises `RateLimited`."""
    started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.started_at = self.clock()

    def check_open(self) -> None:
        """Refuse those who want to watch while the server is about to stop."""
        if self.is_stopping():
            raise Overloaded("the server is shutting down; try again when it is back")

    def check_addresses(self, named: Iterable[tuple[str, str]]) -> None:
        """Refuse the first address that clients may not name, by its field; a `data:` URI leads nowhere."""
        for field_name, url in named:
            if not url.startswith("data:"):
                self.addresses.check(url, field_name)

    async def check_message_addresses(self, named: Iterable[tuple[str, str]]) -> None:
        """As `check_addresses`, and look names up: whoever the message is passed on to may fetch what it names."""
        if fetched := [(field_name, url) for field_name, url in named if not url.startswith("data:")]:
            await self.addresses.check_resolved(fetched)

    def agent(self, name: str) -> m.AgentCard:
        card = self.agents.get(name)
        if card is None:
            raise NotFound(f"there is no agent '{name}'; there are {self._names()}")
        return card

    def agent_of(self, view: m.SessionView) -> m.AgentCard:
        """The agent that takes the session's next turn; refuses if the agent is not served any more."""
        card = self.agents.get(view.agent)
        if card is None:
            raise Conflict(f"agent '{view.agent}' of this session is not served any more; there are {self._names()}")
        return card

    def shown_agent(self, view: m.SessionView) -> m.AgentCard:
        """The session's agent for readers: only its name is known if the agent is not served any more."""
        return self.agents.get(view.agent) or m.AgentCard(name=view.agent)

    def _names(self) -> str:
        return ", ".join(f"'{name}'" for name in self.agents)

    @contextmanager
    def committed(self) -> Iterator[None]:
        """In this block what was asked for is done, or about to be: it is not refused any more for want of anything."""
        try:
            yield
        except Overloaded as error:
            raise OutcomeUnknown(f"the request was accepted, but has no result to return: {error.message}") from None

    @asynccontextmanager
    async def undo_if_refused(self, undo: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
        """In this block something is done for which something else was just made: if it is refused, that goes again."""
        try:
            yield
        except OutcomeUnknown:
            raise
        except GatewayError:
            with self.committed():
                await undo()
            raise

    def lost_turn_error(self, session_id: str, subscription: Subscription) -> GatewayError:
        """Why the end of a turn cannot be told to whoever waits for it: the turn was begun, and may go on."""
        if subscription.cut_at is not None or subscription.is_draining:
            return OutcomeUnknown(
                f"the turn was started, but its end cannot be returned here: read session '{session_id}'"
            )
        return NotFound(f"session '{session_id}' was deleted")

    @asynccontextmanager
    async def follow_turn(
        self, owner: str, session_id: str, receipt: Receipt, options: str, place: StreamSlot | None = None,
    ) -> AsyncIterator[Subscription]:
        """Watch the turn that a receipt is for; a client that goes before the turn yields is said to have left."""
        async with self.report_disconnect(owner, session_id, receipt):
            with self.committed():
                subscription = await self.sessions.subscribe(
                    owner, session_id, self.dialect, options, after=receipt.after, place=place)
            try:
                yield subscription
            finally:
                subscription.close()

    @asynccontextmanager
    async def report_disconnect(self, owner: str, session_id: str, receipt: Receipt) -> AsyncIterator[None]:
        """Whatever breaks this block off, the client that the turn is told to has left."""
        gone = True
        try:
            yield
            gone = False
        finally:
            if gone and receipt.turn_id is not None:
                await self.sessions.client_left(owner, session_id, receipt.turn_id)

    async def begin_turn(self, owner: str, session_id: str, submitting: Coroutine[Any, Any, Receipt]) -> Receipt:
        """Submit what begins a turn that the client is going to follow.

        The handler of a client that goes meanwhile is cancelled. What the session has accepted by then is stored all
        the same: the turn runs, and the client is said to have left it.
        """
        submitted = asyncio.ensure_future(submitting)
        try:
            return await asyncio.shield(submitted)
        except asyncio.CancelledError:
            with suppress(GatewayError):  # whoever would be told has left
                receipt = await submitted
                if receipt.begun and receipt.turn_id is not None:
                    await self.sessions.client_left(owner, session_id, receipt.turn_id)
            raise

    async def stream_turn(
        self, request: web.Request, session_id: str, receipt: Receipt, options: str, place: StreamSlot, *,
        to_the_end: bool = False, heartbeat: float | None = None, **words: Any,
    ) -> web.StreamResponse:
        """The turn as server-sent events, up to where it yields or, if so asked, to its end."""
        async with self.follow_turn(request[OWNER], session_id, receipt, options, place) as subscription:
            await asyncio.sleep(0)  # the agent begins, and asks whom it has to, while the answer is made ready
            return await stream_sse(
                request, subscription, heartbeat=heartbeat or self.heartbeat, patience=self.send_timeout,
                until_yield=not to_the_end, until_end=to_the_end, **words,
            )

    async def stream_session(
        self, request: web.Request, session_id: str, options: str, *, after: int, comment: str,
        told: Callable[[int], None],
    ) -> web.StreamResponse:
        """All that happens in a session after that record, for as long as the client wants it."""
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
                told=told,
            )
        finally:
            subscription.close()

    async def stream_remaining(
        self, request: web.Request, session_id: str, options: str, *, after: int, had: int,
    ) -> web.StreamResponse:
        """The turn that begins after that record, without the frames that the client has had, up to where it yields."""
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
        self, request: web.Request, session_id: str, receipt: Receipt, options: str, place: StreamSlot,
    ) -> bytes:
        """What the dialect says where the turn yields."""
        async with self.follow_turn(request[OWNER], session_id, receipt, options, place) as subscription:
            frames: list[bytes] = []
            while chunks := await subscription.chunks():
                for chunk in chunks:
                    frames += chunk.frames
                    if chunk.yields:
                        return b"".join(frames)
            raise self.lost_turn_error(session_id, subscription)
