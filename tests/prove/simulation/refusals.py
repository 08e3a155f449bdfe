"""Which requests were answered 503 or 504, and which of these refusals nothing explains: nothing was wrong for long."""

from asyncio import AbstractEventLoop
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import aiohttp

from tests.prove.simulation.network import Trace

REFUSALS = (503, 504)
VERSION = "v1"


def route_of(path: str) -> str:
    """The path without the ids in it."""
    return "/".join(
        "*" if part != VERSION and any(letter.isdigit() for letter in part) else part for part in path.split("/"))


class Refusal(NamedTuple):
    """A request that was refused, or of which nobody knew whether it was carried out."""

    client: str
    request: str
    status: int
    since_trouble: float
    """How many seconds before this request began something was wrong for the last time; negative: while it ran."""


class RefusalRecorder:
    """Sees every HTTP request of the clients of a world; `last_trouble` says when something was wrong last."""

    def __init__(self, loop: AbstractEventLoop, trace: Trace, answers: Counter[str]) -> None:
        self.seen: list[Refusal] = []
        self.last_trouble: Callable[[], float] = loop.time
        self._answers = answers
        """How often each kind of answer was given."""
        self._loop = loop
        self._trace = trace

    def tracing(self, client: str) -> aiohttp.TraceConfig:
        """What an HTTP client of that name is given."""
        config = aiohttp.TraceConfig()

        async def began(session: Any, context: SimpleNamespace, given: Any) -> None:
            context.began = self._loop.time()

        async def ended(session: Any, context: SimpleNamespace, given: aiohttp.TraceRequestEndParams) -> None:
            request, status = f"{given.method} {given.url.path}", given.response.status
            self._answers[f"{given.method} {route_of(given.url.path)} {status}"] += 1
            self._trace(client, "answered", f"{request} {status} after {self._loop.time() - context.began:.3f} s")
            if status in REFUSALS:
                self.seen.append(Refusal(client, request, status, context.began - self.last_trouble()))

        config.on_request_start.append(began)
        config.on_request_end.append(ended)
        return config

    def verdict(self, seconds: float) -> list[str]:
        """The refusals of requests that began later than so many seconds after the last trouble."""
        return [
            f"{one.client}: {one.request} was answered {one.status}, {one.since_trouble:.3f} s after all was mended"
            for one in self.seen if one.since_trouble > seconds
        ]
