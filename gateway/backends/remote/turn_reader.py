"""Reads a turn of the server through filters that may hold items back for a while."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from gateway.errors import GatewayError
from gateway.ports import DecodedItem, RemoteTurn

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
