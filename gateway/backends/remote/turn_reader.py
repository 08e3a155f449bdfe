"""Reads a turn of the server through filters that may hold items back, as the one for the stop reason does."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

import gateway.model as m
from gateway.errors import GatewayError
from gateway.ids import Mint
from gateway.ports import DecodedItem, RemoteTurn, RemoteTurnEnd, ScopedEvent

HOLD_SECONDS = 0.5
"""If the server sends nothing for so long, a filter that only waits for what comes next releases its items."""


class ItemFilter(Protocol):
    """Changes the items of a turn, or holds some until others have arrived."""

    @property
    def is_holding(self) -> bool:
        """Whether the filter holds items that must not wait for long."""
    def feed(self, items: Sequence[DecodedItem]) -> Sequence[DecodedItem]:
        """The items to pass on now."""
    def release(self) -> Sequence[DecodedItem]:
        """The items that were held."""


class TurnReader:
    """The items of a turn after its filters; closing it closes the turn."""

    def __init__(self, turn: RemoteTurn, *filters: ItemFilter, seconds: float = HOLD_SECONDS) -> None:
        self._turn, self._filters, self._seconds = turn, filters, seconds
        self._next: asyncio.Task[Sequence[DecodedItem]] | None = None
        self._failure: GatewayError | None = None
        self._is_over = False

    async def read(self) -> Sequence[DecodedItem]:
        """All items that have arrived, at least one; empty at the end.

        Items that were held when the server failed are returned before the failure is raised.
        """
        while not self._is_over:
            try:
                is_timed = self._next is not None or self._is_holding
                received = await (self._receive() if is_timed else self._turn.read())
            except GatewayError as error:
                self._failure, received = error, ()
            if received is None:
                items = self._pass(release_all=False)
            elif received:
                items = received
                for each in self._filters:
                    items = each.feed(items)
            else:
                self._is_over, items = True, self._pass(release_all=True)
            if items:
                return items
        if self._failure is not None:
            raise self._failure
        return ()

    async def aclose(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._turn.aclose()

    async def _receive(self) -> Sequence[DecodedItem] | None:
        """The next items of the turn; None if none came in time and a filter is holding."""
        coming = self._next = self._next or asyncio.create_task(self._read())
        if self._is_holding and not (await asyncio.wait({coming}, timeout=self._seconds))[0]:
            return None
        received = await coming
        self._next = None
        return received

    async def _read(self) -> Sequence[DecodedItem]:
        return await self._turn.read()

    @property
    def _is_holding(self) -> bool:
        return True in [each.is_holding for each in self._filters]

    def _pass(self, *, release_all: bool) -> Sequence[DecodedItem]:
        """The items that filters release, after the filters behind them."""
        items: Sequence[DecodedItem] = ()
        for each in self._filters:
            items = each.feed(items) if items else ()
            if release_all or each.is_holding:
                items = [*items, *each.release()]
        return items


ORDINARY_REASONS = (m.StopReason.END_TURN, m.StopReason.TOOL_USE, m.StopReason.NEEDS_INPUT)
"""Reasons that do not say why a turn ended early."""
INDEPENDENT_EVENTS = (ScopedEvent, m.SessionUpdated, m.NoticePosted, m.CustomEvent, m.FaultRaised)
"""Events that may pass while the end of a message is held."""


class StopReasonFilter:
    """Holds the end of a message that may be the turn's last, until it is known why the turn ends.

    A backend has no other way to report the stop reason of a turn. Only the end of a message is held, and only until
    something follows it; text never is.
    """

    is_holding = False  # an end is not urgent: something always follows it

    def __init__(self, mint: Mint) -> None:
        self._mint = mint
        self._held: m.MessageEnded | None = None
        self._last_reason = m.StopReason.END_TURN

    def feed(self, items: Sequence[DecodedItem]) -> list[DecodedItem]:
        passed: list[DecodedItem] = []
        for item in items:
            if isinstance(item, RemoteTurnEnd):
                passed += [*self._amended(item), item]
            elif isinstance(item, m.MessageEnded):
                passed += self.release()
                self._last_reason = item.stop_reason
                if item.stop_reason is m.StopReason.END_TURN and item.outcome is m.Outcome.COMPLETED:
                    self._held = item
                else:
                    passed.append(item)
            else:
                if self._held is not None and not isinstance(item, INDEPENDENT_EVENTS):
                    passed += self.release()
                passed.append(item)
        return passed

    def release(self) -> list[DecodedItem]:
        held, self._held = self._held, None
        return [] if held is None else [held]

    def _amended(self, end: RemoteTurnEnd) -> list[DecodedItem]:
        """The held end with the turn's reason; if the last message has ended already, an empty one with the reason."""
        reason, held = end.stop_reason, self._held
        if end.outcome is not m.Outcome.COMPLETED or reason in ORDINARY_REASONS or reason is self._last_reason:
            return self.release()
        if held is not None:
            self._held = None
            return [replace(held, stop_reason=reason)]
        if self._last_reason not in ORDINARY_REASONS:
            return []
        message_id = self._mint("msg")
        return [m.MessageStarted(message_id=message_id, role=m.Role.ASSISTANT),
                m.MessageEnded(message_id=message_id, stop_reason=reason)]
