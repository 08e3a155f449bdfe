"""A watch over a server: the server is examined once, and again after each restart."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

from conformance.kit.server_probe import NoServer
from conformance.kit.verdict import Report

STEADY = 0.5
"""Seconds between two looks at a server that is there: a connection is opened and closed."""
FIRST, LONGEST = 0.5, 8.0
"""Seconds between two looks at one that is gone: twice as long each time, up to the longest."""

Look = Callable[[], Awaitable[str | None]]
"""What keeps the server from being used, in words; None if nothing does."""


class Watch:
    """Gives a report for each time that the server is there; whoever iterates ends it."""

    def __init__(
        self,
        refusal: Look,
        absence: Look,
        examine: Callable[[], Awaitable[Report]],
        say: Callable[[str], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._refusal = refusal
        self._absence = absence
        self._examine = examine
        self._say = say
        self._sleep = sleep

    def reports(self) -> Iterator[Report]:
        """Each step has a loop of its own, which takes along whatever an examination left running."""
        while True:
            found = asyncio.run(self.attempt())
            if found is not None:
                yield found
                asyncio.run(self.gone())
            asyncio.run(self.back())

    async def attempt(self) -> Report | None:
        """Examine the server; None if it was gone before the end, as half a report would blame the server for that."""
        examination = asyncio.ensure_future(self._examine())
        absence = asyncio.ensure_future(self.gone())
        done, _ = await asyncio.wait({examination, absence}, return_when=asyncio.FIRST_COMPLETED)
        examination.cancel()
        absence.cancel()
        await asyncio.wait({examination, absence})
        if absence in done:
            asyncio.get_running_loop().set_exception_handler(_ignore)
            return absence.result()
        try:
            return examination.result()
        except NoServer:
            return None

    async def gone(self) -> None:
        """Wait until connections are refused."""
        while await self._refusal() is None:
            await self._sleep(STEADY)
        self._say("the server is gone; it is examined again when it is back (Ctrl-C ends the watch)")

    async def back(self) -> None:
        """Wait until a server of the dialect answers; what else answers there is said once."""
        pause, said = FIRST, ""
        while (words := await self._hindrance()) is not None:
            if words not in ("", said):
                self._say(words)
                said = words
            await self._sleep(pause)
            pause = min(2 * pause, LONGEST)
        self._say("the server is back")

    async def _hindrance(self) -> str | None:
        """Why the server cannot be examined yet; empty while connections are refused, as that was said already."""
        return await self._absence() if await self._refusal() is None else ""


def _ignore(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """What the cases of an examination that was dropped still run into; the loop ends with them."""
