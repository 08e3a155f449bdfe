"""Clients of the soak test: they talk in every dialect, answer, interrupt, reconnect, or read nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp
import socketio  # type: ignore[import-untyped]

from .measure import BenchFailure

MESSAGES = (
    "hello", "/think why", "/tool clock", "/burst 50", "/slow 3", "/fork", "/ui", "/title Trip", "/fail", "/compact",
)
TURNS_PER_SESSION = 5
TURN_SECONDS = 30.0
"""A turn that has not ended after so many seconds is a fault of the server."""


@dataclass
class SoakCounts:
    """The counts of what was done so far."""

    turns: int = 0
    asks: int = 0
    interrupts: int = 0
    returns: int = 0
    hangs: int = 0
    by_dialect: dict[str, int] = field(default_factory=dict)

    def turn(self, dialect: str) -> None:
        self.turns += 1
        self.by_dialect[dialect] = self.by_dialect.get(dialect, 0) + 1


class SoakClients:
    """What the clients of one server share; their visits are in `bench/dialects`."""

    def __init__(self, address: str, http: aiohttp.ClientSession, tally: SoakCounts, seed: int = 0) -> None:
        self.address = address
        self.http = http
        self.tally = tally
        self.random = Random(seed)

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        async with self.http.request(method, f"{self.address}{path}", json=body) as answer:
            if answer.status >= 400:
                raise BenchFailure(f"{method} {path} was answered {answer.status}: {(await answer.text())[:300]}")
            return await answer.json() if answer.status != 204 else None


async def repeat_visits(
    crowd: SoakClients, visit: Callable[[SoakClients], Awaitable[None]], until: asyncio.Event,
) -> None:
    """One visit after the other, and at least one; a visit that takes for ever is a fault."""
    is_first = True
    while is_first or not until.is_set():
        is_first = False
        try:
            await asyncio.wait_for(visit(crowd), 4 * TURN_SECONDS)
        except (aiohttp.ClientError, socketio.exceptions.SocketIOError, TimeoutError) as error:
            raise BenchFailure(f"{visit.__module__}: {type(error).__name__}: {error}") from error


async def idle_sessions(crowd: SoakClients, count: int) -> None:
    """Sessions in which nothing happens."""
    for _ in range(count):
        await crowd.call("POST", "/aap/sessions", {"agent": {"name": "demo"}})


__all__ = [
    "SoakClients",
    "SoakCounts",
    "idle_sessions",
    "repeat_visits",
]
