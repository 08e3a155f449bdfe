"""Looks for false alarms: examines correct servers again and again, slowly, and in every variation; none may fail.

`python -m conformance.faults.false_alarms cas --runs 50 --jitter 20` examines the reference server fifty times, once
more with up to 20 ms before every answer and event, and every variation once. With `--url` it is the server at that
address that is examined, plainly and slowly; it is then the caller who says that it is correct.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from aiohttp import web

from conformance.faults.kill.setups import KEY, SETUPS, setup_of
from conformance.faults.local_server import served
from conformance.faults.proxy.front import proxied
from conformance.faults.proxy.interceptor import Interceptor
from conformance.faults.steps import Variant
from conformance.kit.documents import DocumentError
from conformance.kit.requirement import Level
from conformance.kit.runner import AT_ONCE, Runner
from conformance.kit.suite import Suite, Target, load_suite
from conformance.kit.verdict import Report

USAGE_ERROR = 2


class Jitter(Interceptor):
    """Passes everything on unchanged, each time after a random while."""

    def __init__(self, most: float, seed: int) -> None:
        self._most = most
        self._random = random.Random(seed)

    async def pause(self) -> None:
        await asyncio.sleep(self._random.uniform(0, self._most))


@dataclass(frozen=True)
class Round:
    """One examination of a server that is correct, and what was held against it."""

    name: str
    alarms: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class FalseAlarmSearch:
    """Which server is examined, how often, and how patiently."""

    dialect: str
    runs: int = 1
    jitter: float = 0.0
    """Seconds at most before every answer and event of the slow run; 0 leaves it out."""
    seed: int = 1
    url: str | None = None
    key: str | None = KEY
    profile: Path | None = None
    within: float = 5.0
    with_variations: bool = True
    at_once: int = AT_ONCE
    """How many cases are put at a time."""
    suite: Suite = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "suite", load_suite(self.dialect))

    async def rounds(self) -> AsyncIterator[Round]:
        """The plain runs, all on one server, then the slow one, then the variations."""
        async with AsyncExitStack() as stack:
            ours = served(setup_of(self.dialect).server())
            url = self.url if self.url is not None else await stack.enter_async_context(ours)
            for count in range(1, self.runs + 1):
                yield round_of(f"run {count}", await self.examine(url))
            if self.jitter:
                slow = await stack.enter_async_context(proxied(url, _route, Jitter(self.jitter, self.seed)))
                yield round_of(f"run with up to {self.jitter * 1000:g} ms of delay", await self.examine(slow))
        for variation in self.variations():
            async with served(setup_of(self.dialect).make(variation)) as url:
                yield round_of(f"run on {variation.name}", await self.examine(url), with_shoulds=False)

    async def examine(self, url: str) -> Report:
        target = Target(url, self.key, self.within, allow_destructive=True)
        return await Runner(self.suite, target, self._settings(), self.at_once).run(self.suite.catalogue.requirements)

    def _settings(self) -> Any:
        is_ours = self.url is None and self.profile is None
        setup = setup_of(self.dialect)
        return setup.profile(self.suite, setup.server()) if is_ours else self.suite.read_profile(self.profile)

    def variations(self) -> Sequence[Variant]:
        """The correct servers that differ from the reference."""
        return setup_of(self.dialect).variations if self.url is None and self.with_variations else ()


def round_of(name: str, report: Report, with_shoulds: bool = True) -> Round:
    """What a report holds against a correct server; a variation may do without what is only a SHOULD."""
    is_must = {item.requirement.id: item.requirement.level is Level.MUST for item in report.findings}
    alarms = [
        f"{result.name} ({', '.join(result.requirements)}): {result.outcome}: {result.remark}"
        for result in report.results
        if not result.is_clean and (with_shoulds or any(is_must[item] for item in result.requirements))
    ]
    return Round(name, tuple(alarms), report.seconds)


async def _route(request: web.Request) -> str:
    return f"{request.method} {request.path}"


async def print_rounds(search: FalseAlarmSearch) -> int:
    """Print every round as it ends; the number of false alarms."""
    alarms = 0
    async for item in search.rounds():
        alarms += len(item.alarms)
        typer.echo(f"{search.dialect}: {item.name}: {len(item.alarms)} alarms, {item.seconds:.1f} s")
        for words in item.alarms:
            typer.echo(f"    {words}")
    return alarms


def find_false_alarms(
    dialect: Annotated[str, typer.Argument(help=f"One of {', '.join(SETUPS)}.")],
    runs: Annotated[int, typer.Option(min=0, help="How many plain runs.")] = 50,
    jitter: Annotated[float, typer.Option(min=0, help="Most milliseconds before every answer and event.")] = 20,
    seed: Annotated[int, typer.Option(help="Where the delays begin.")] = 1,
    url: Annotated[str | None, typer.Option(help="Examine this server instead of the reference server.")] = None,
    key: Annotated[str | None, typer.Option(help="The key of the server at --url.")] = None,
    profile: Annotated[Path | None, typer.Option(help="The profile of the server at --url.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds a case waits for an answer.")] = 5.0,
) -> None:
    """Examine correct servers again and again; the exit code is 0 if nothing at all is held against them."""
    if dialect not in SETUPS:
        raise _unusable(f"there is no dialect {dialect!r}; there are: {', '.join(SETUPS)}")
    logging.disable(logging.CRITICAL)
    search = FalseAlarmSearch(dialect, runs, jitter / 1000, seed, url, key if url else KEY, profile, timeout)
    try:
        found = asyncio.run(print_rounds(search))
    except DocumentError as error:
        raise _unusable(str(error)) from None
    typer.echo(f"{dialect}: {found} false alarms")
    raise typer.Exit(1 if found else 0)


def _unusable(words: str) -> typer.Exit:
    typer.echo(words, err=True)
    return typer.Exit(USAGE_ERROR)


if __name__ == "__main__":
    typer.run(find_false_alarms)
