"""Observations: a stimulus that several cases judge is carried out once per examination, and shown to each of them.

A stimulus has an examination of its own, which stays open until the end of the run; then its resources are deleted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from conformance.kit.departures import Departures
from conformance.kit.expect import Failed
from conformance.kit.transcript import Transcript
from conformance.kit.unreadable_answers import reading

T = TypeVar("T")
Opened = Callable[[Transcript, Departures], AbstractAsyncContextManager[Any]]
"""Opens an examination for a stimulus."""


@dataclass
class Observed:
    """One stimulus and its result."""

    transcript: Transcript
    departures: Departures
    asker: Transcript
    """The transcript of the first case that asked."""
    answer: "asyncio.Future[Any]"
    work: "asyncio.Task[None] | None" = None
    is_foundation: bool = False
    """Whether another stimulus uses this result, which is then deleted later."""
    ending: asyncio.Event = field(default_factory=asyncio.Event)

    def hand_over(self, done: "asyncio.Task[Any]") -> None:
        """Make the result of the work the answer, unless there is one already."""
        if self.answer.done():
            return
        if done.cancelled():
            self.answer.set_exception(Failed("what was to be observed to take less time", "it had not ended by then"))
        elif (error := done.exception()) is not None:
            self.answer.set_exception(error)
        else:
            self.answer.set_result(done.result())


class ObservationRun:
    """The stimuli of one run of the examination, each carried out once."""

    def __init__(self, opened: Opened, make_transcript: Callable[[], Transcript], limit: float) -> None:
        self._opened = opened
        self._make_transcript = make_transcript
        self._limit = limit
        self.found: dict[Hashable, Observed] = {}

    def observe(self, key: Hashable, make: Callable[[Any], Awaitable[Any]], asker: Transcript) -> Observed:
        """The stimulus of this key; the first case that asks starts it."""
        if key not in self.found:
            transcript = self._make_transcript()
            answer = asyncio.get_running_loop().create_future()
            seen = self.found[key] = Observed(transcript, Departures(transcript), asker, answer)
            seen.work = asyncio.create_task(self._carried_out(seen, make))
            seen.work.add_done_callback(seen.hand_over)
        found = self.found[key]
        found.is_foundation |= any(seen.transcript is asker for seen in self.found.values())
        return found

    async def _carried_out(self, seen: Observed, make: Callable[[Any], Awaitable[Any]]) -> None:
        """Carry out the work in a task of its own, in an examination that stays open if the work succeeds."""
        async with self._opened(seen.transcript, seen.departures) as examination:
            work = asyncio.create_task(self._bounded(seen, make, examination))
            try:
                await asyncio.wait({work})
            finally:
                work.cancel()
            seen.hand_over(work)
            if not work.cancelled():
                work.result()
            await seen.ending.wait()

    async def _bounded(self, seen: Observed, make: Callable[[Any], Awaitable[Any]], examination: Any) -> Any:
        async with asyncio.timeout(self._limit):
            with reading(seen.transcript):
                return await make(examination)

    async def close(self, within: float) -> None:
        """Delete what the stimuli created, and last what other stimuli use."""
        for is_foundation in (False, True):
            await self._cleared([seen for seen in self.found.values() if seen.is_foundation is is_foundation], within)

    async def _cleared(self, stimuli: list[Observed], within: float) -> None:
        for seen in stimuli:
            seen.ending.set()
        tasks = {seen.work for seen in stimuli if seen.work is not None}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=within)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for seen in stimuli:
            if seen.answer.done() and not seen.answer.cancelled():
                seen.answer.exception()  # nobody may have waited for it to the end


@dataclass
class Observations:
    """What one case observes; its transcript and its departures include those of each stimulus."""

    run: ObservationRun
    transcript: Transcript
    departures: Departures
    _shown: set[Hashable] = field(default_factory=set)

    async def once(self, key: Hashable, make: Callable[[Any], Awaitable[T]]) -> T:
        """The result of `make(examination)`, made once for all cases with this key; all of them share a failure."""
        seen = self.run.observe(key, make, self.transcript)
        try:
            found: T = await asyncio.shield(seen.answer)
        except Failed as failure:
            raise failure.again() from None
        finally:
            self._show(key, seen)
        return found

    def _show(self, key: Hashable, seen: Observed) -> None:
        if key not in self._shown:
            self._shown.add(key)
            self.transcript.show_shared(str(key), list(seen.transcript.entries))
            self.departures.adopt(seen.departures.noted)
            self.departures.adopt_readings(seen.departures.readings)
