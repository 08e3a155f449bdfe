"""Limits of waits: after one wait in vain, the next wait for the same kind of answer is short, until one arrives."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

FRACTION = 0.1
SHORTEST = 1.0
PACE = 2
"""A brief wait is this many times the longest pause of the server so far."""
MANY = 8
"""After so many full waits in vain, every kind of answer that has never come is waited for briefly."""
LEAST = 0.01
ANSWER = "an answer to a question before the examination"
"""The kind of waits before any case: one wait in vain makes all of them short."""
NAMES = re.compile(r"[^/]*\d[^/]*")

_goal: ContextVar[str | None] = ContextVar("goal", default=None)


@dataclass(frozen=True)
class Wait:
    """How long one wait may take; its text is what a report shows."""

    limit: float
    is_brief: bool = False

    def __str__(self) -> str:
        return f"{self.limit:g} s" + (" (it was waited for longer before, in vain)" if self.is_brief else "")


class WaitLimits:
    """The waits of one examination and their results by kind: an event, an answer, the end of a stream."""

    def __init__(self) -> None:
        self._came: dict[str, bool] = {}
        self._in_vain = 0
        self._longest_quiet = 0.0

    def wait(self, kind: str, timeout: float) -> Wait:
        """The limit of a wait for this kind of answer; inside of `goal` the goal is the kind."""
        kind = _goal.get() or kind
        if self._came.get(kind, self._in_vain < MANY):
            return Wait(timeout)
        brief = max(SHORTEST, timeout * FRACTION, self._longest_quiet * PACE)
        return Wait(brief, is_brief=True) if brief < timeout else Wait(timeout)

    def came(self, kind: str) -> None:
        """An answer of this kind has arrived: the next wait for one has its full length again."""
        self._came[kind] = True

    def went_on(self, quiet: float) -> None:
        """The server has sent something after a pause of so many seconds: that is its pace."""
        self._longest_quiet = max(self._longest_quiet, quiet)

    def is_vain(self, goal: str) -> bool:
        """Whether the last wait for this goal was in vain."""
        return self._came.get(goal) is False

    def in_vain(self, kind: str, wait: Wait) -> None:
        """Nothing arrived during the whole wait."""
        self._came[_goal.get() or kind] = False
        self._in_vain += not wait.is_brief

    @contextmanager
    def goal(self, name: str) -> Iterator[None]:
        """All waits in this context count as waits for this goal; it is reached if the context ends normally."""
        token = _goal.set(name)
        try:
            yield
        finally:
            _goal.reset(token)
        self.came(name)

    @asynccontextmanager
    async def bounded(
        self, kind: str, usual: float, within: float | None = None, since: float | None = None
    ) -> AsyncIterator[Wait]:
        """Bound one wait, from `since` if the quiet began earlier; TimeoutError if it was in vain.

        A wait `within` a time that the case names is not remembered: the case may expect that nothing arrives.
        """
        now = asyncio.get_running_loop().time()
        wait = Wait(within) if within else self.wait(kind, usual)
        begun = now if since is None else since
        try:
            async with asyncio.timeout(max(LEAST, begun + wait.limit - now)):
                yield wait
        except TimeoutError:
            if not within:
                self.in_vain(kind, wait)
            raise
        if since is None:
            self.went_on(asyncio.get_running_loop().time() - now)


def route(path: str) -> str:
    """A path without ids, so that equal requests about other resources are of the same kind."""
    return NAMES.sub("*", path.partition("?")[0])
