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
"""A brief wait is this many times the longest quiet after which the server has gone on so far."""
MANY = 8
"""After so many full waits in vain, what has never come is waited for briefly from the start."""
LEAST = 0.01
ANSWER = "an answer to a question before the examination"
"""What is waited for before any case: whichever question it is, one wait in vain makes the next ones short."""
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
        """How long to wait for something of this kind; a goal, if there is one, is the kind."""
        kind = _goal.get() or kind
        if self._came.get(kind, self._in_vain < MANY):
            return Wait(timeout)
        brief = max(SHORTEST, timeout * FRACTION, self._longest_quiet * PACE)
        return Wait(brief, is_brief=True) if brief < timeout else Wait(timeout)

    def came(self, kind: str) -> None:
        """What was waited for is there: from now on it is waited for at full length again."""
        self._came[kind] = True

    def went_on(self, quiet: float) -> None:
        """The server said something after so much quiet: it is alive, and that is its pace."""
        self._longest_quiet = max(self._longest_quiet, quiet)

    def in_vain(self, kind: str, wait: Wait) -> None:
        """Nothing came in all that time."""
        self._came[_goal.get() or kind] = False
        self._in_vain += not wait.is_brief

    @contextmanager
    def goal(self, name: str) -> Iterator[None]:
        """Whatever is waited for in here is waited for on the way to this; leaving in good order means it came."""
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

        What a case waits for `within` a time of its own, it may well expect not to come: that is not remembered.
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
    """A path without the names in it, so that the same question about other things is of the same kind."""
    return NAMES.sub("*", path.partition("?")[0])
