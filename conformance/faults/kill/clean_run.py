"""The clean run: every case is put once, through a proxy that changes nothing, to learn what there is to be damaged."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from conformance.faults.kill.case_runner import CaseRunner
from conformance.faults.kill.paths import Walk
from conformance.faults.kill.traffic import CaseTraffic, Traffic
from conformance.faults.proxy.interceptor import Answer, Interceptor, PassedMessage, StreamInterceptor
from conformance.kit.schemas import WATCHER

Naming = Callable[[str, Any], str]


class NotClean(Exception):
    """A case fails before anything was damaged."""


class TrafficRecorder(Interceptor):
    """Lets everything pass and notes it."""

    def __init__(self, record: CaseTraffic, naming: Naming) -> None:
        self._record = record
        self._naming = naming

    def answered(self, answer: Answer) -> Answer:
        self._record.answers.add((answer.place, answer.is_stream))
        if answer.json is not ...:
            self._record.messages.append((answer.place, answer.json))
        return answer

    def stream(self, channel: str) -> StreamInterceptor:
        return _StreamRecorder(self._record, self._naming)


class _StreamRecorder(StreamInterceptor):
    def __init__(self, record: CaseTraffic, naming: Naming) -> None:
        self._record = record
        self._naming = naming
        self._before: str | None = None

    def message(self, message: PassedMessage) -> Sequence[PassedMessage]:
        name = self._naming(message.name, message.json)
        if message.json is not ...:
            self._record.messages.append((f"{message.channel} {name}", message.json))
        if self._before is not None:
            self._record.pairs.add((message.channel, self._before, name))
        self._before = name
        return (message,)


async def run_cleanly(case_runner: CaseRunner, walk: Walk, within: float, at_once: int) -> Traffic:
    """The traffic of one clean run; NotClean if a case fails on the correct server."""
    places = asyncio.Semaphore(at_once)

    async def visit(name: str) -> CaseTraffic:
        async with places:
            return await _visited(case_runner, walk, name, within)

    traffic = Traffic(walk)
    for record in await asyncio.gather(*map(visit, case_runner.cases)):
        traffic.add(record)
    return traffic


async def _visited(case_runner: CaseRunner, walk: Walk, name: str, within: float) -> CaseTraffic:
    record = CaseTraffic(name, case_runner.binds(case_runner.cases[name]))
    WATCHER.set(lambda schema, value, owner: record.held(walk, schema, value, owner))
    async with case_runner.damaged(TrafficRecorder(record, case_runner.setup.naming)) as url:
        result = await case_runner.put(name, url, within)
    if not result.is_clean:
        raise NotClean(f"{case_runner.dialect}: {name} does not pass on the correct server: {result.remark}")
    record.seconds = result.seconds
    return record
