"""Whole examinations of servers in the loop of a test: their verdicts, what they leave behind, and their recordings."""

import asyncio
import itertools
import random
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from yarl import URL

from conformance.faults.kill.setups import setup_of
from conformance.faults.local_server import Servable, served
from conformance.kit.runner import AT_ONCE, Runner
from conformance.kit.secrets import Redactor
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Report
from conformance.offline.judge import judge, mounted
from conformance.offline.recording_file import read
from conformance.recording.recorder import Recorder
from conformance.recording.relay import relaying
from tests.support.conformance.examination_facts import EXAMINED, KEY, examination_facts

PATIENT = 30.0
"""Seconds that a correct server may take; a wait of a simulated clock costs nothing."""
INSTANT = 2e-4
"""Seconds between two lines of a recording, which tells the time in tenths of a millisecond."""


def made(dialect: str, server: Callable[..., Any]) -> Any:
    """A server of this class, with the key of the examiners if it has keys."""
    return setup_of(dialect).make(server, KEY)


SERVERS: dict[str, Callable[[], Any]] = {name: partial(made, name, setup_of(name).server_type) for name in EXAMINED}


def suited(dialect: str, server: Any) -> BaseModel:
    """The profile for a server that beats and ticks fast and is not slow for long."""
    setup_of(dialect).quicken(server)
    return setup_of(dialect).profile(load_suite(dialect), server)


async def examine_at(
    dialect: str,
    url: str,
    profile: BaseModel,
    *ids: str,
    within: float,
    at_once: int | None = None,
    clears: bool = True,
    cases: Collection[str] = (),
) -> Report:
    """Put the suite of a dialect, or the named requirements or cases of it, to the server at an address."""
    suite = load_suite(dialect)
    if cases:
        suite = replace(suite, cases=tuple(case for case in suite.cases if case.name in cases))
    wanted = [item for item in suite.catalogue.requirements if not ids or item.id in ids]
    target = Target(url, KEY, within, allow_destructive=True, is_disposable=not clears)
    return await Runner(suite, target, profile, at_once or examination_facts(dialect).at_once or AT_ONCE).run(wanted)


async def examine_server(
    dialect: str, server: Servable, *ids: str, within: float = PATIENT, profile: Any = None, **more: Any
) -> Report:
    """Serve a server for as long as it is examined."""
    settings = suited(dialect, server)
    async with served(server) as url:
        return await examine_at(dialect, url, profile or settings, *ids, within=within, **more)


async def examine_slow_server(dialect: str, server: Servable, *ids: str, jitter: float, seed: int = 1) -> Report:
    """Examine a server of which every answer and event is up to `jitter` seconds on its way."""
    profile, chance = suited(dialect, server), random.Random(seed)
    async with served(server) as url:
        loop: Any = asyncio.get_running_loop()
        loop.network.listeners[URL(url).port].pace = lambda: chance.uniform(0, jitter)
        return await examine_at(dialect, url, profile, *ids, within=PATIENT)


async def record_server(
    dialect: str, server: Servable, path: Path, *ids: str, within: float = PATIENT, **more: Any
) -> Report:
    """Examine a server through the recording proxy, which writes the file."""
    with path.open("wb") as file:
        async with served(server) as url:
            report = await record_at(dialect, url, file, suited(dialect, server), *ids, within=within, **more)
    return report


async def record_at(dialect: str, url: str, file: Any, profile: BaseModel, *ids: str, **more: Any) -> Report:
    """Examine the server at an address through the recording proxy."""
    recorder = Recorder(file, dialect, URL(url), Redactor(), _advancing(asyncio.get_running_loop().time))
    async with relaying(URL(url), recorder, "127.0.0.1", 0) as address:
        report = await examine_at(dialect, str(address), profile, *ids, **more)
    recorder.stopped()
    return report


def _advancing(clock: Callable[[], float]) -> Callable[[], float]:
    """The clock, a little later each time it is read: what follows in a recording is later, as it is in real time."""
    reads = itertools.count()
    return lambda: clock() + next(reads) * INSTANT


def judged(dialect: str, path: Path) -> Report:
    """What the recording shows of every requirement."""
    suite = load_suite(dialect)
    return judge(suite, mounted(read(path), dialect), suite.catalogue.requirements)


def troubles(report: Report) -> list[str]:
    """Every case that did not pass, and why."""
    return [f"{result.name}: {result.remark}" for result in report.results if result.outcome is not Outcome.PASSED]


def stumbles(report: Report) -> list[str]:
    """Every case in which the examiner broke."""
    return [f"{result.name}: {result.remark}" for result in report.results if "stumbled" in result.remark]
