"""The clean run: every case put once through a proxy that only listens, to learn what there is to be damaged."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from conformance.faults.kill.atlas import Atlas, Record
from conformance.faults.kill.bench import Bench
from conformance.faults.kill.paths import Walk
from conformance.faults.proxy.passing import Answer, Listener, Meddler, Told
from conformance.kit.schemas import WATCHER
from conformance.kit.verdict import Outcome

Naming = Callable[[str, Any], str]


class NotClean(Exception):
    """A case fails before anything was damaged."""


class Learner(Meddler):
    """Lets everything pass and notes it."""

    def __init__(self, record: Record, naming: Naming) -> None:
        self._record = record
        self._naming = naming

    def answered(self, answer: Answer) -> Answer:
        self._record.answers.add((answer.place, answer.is_stream))
        if answer.json is not ...:
            self._record.messages.append((answer.place, answer.json))
        return answer

    def listener(self, channel: str) -> Listener:
        return _Noting(self._record, self._naming)


class _Noting(Listener):
    def __init__(self, record: Record, naming: Naming) -> None:
        self._record = record
        self._naming = naming
        self._before: str | None = None

    def told(self, told: Told) -> Sequence[Told]:
        name = self._naming(told.name, told.json)
        if told.json is not ...:
            self._record.messages.append((f"{told.channel} {name}", told.json))
        if self._before is not None:
            self._record.pairs.add((told.channel, self._before, name))
        self._before = name
        return (told,)


async def learn(bench: Bench, walk: Walk, within: float, at_once: int) -> Atlas:
    """The atlas of one clean run; NotClean if a case fails on the correct server."""
    places = asyncio.Semaphore(at_once)

    async def visit(name: str) -> Record:
        async with places:
            return await _visited(bench, walk, name, within)

    atlas = Atlas(walk)
    for record in await asyncio.gather(*map(visit, bench.cases)):
        atlas.add(record)
    return atlas


async def _visited(bench: Bench, walk: Walk, name: str, within: float) -> Record:
    record = Record(name, bench.binds(bench.cases[name]))
    WATCHER.set(lambda schema, value: record.held(walk, schema, value))
    async with bench.damaged(Learner(record, bench.setup.naming)) as url:
        result = await bench.put(name, url, within)
    if result.outcome is not Outcome.PASSED:
        raise NotClean(f"{bench.dialect}: {name} does not pass on the correct server: {result.remark}")
    record.seconds = result.seconds
    return record
