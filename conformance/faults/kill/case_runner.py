"""Puts one case to one server, through a proxy with an interceptor in between."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache

from conformance.faults.fault import Fault
from conformance.faults.kill.setups import KEY, Routes, setup_of
from conformance.faults.local_server import served
from conformance.faults.proxy.front import proxied
from conformance.faults.proxy.interceptor import Interceptor
from conformance.kit.case import Case
from conformance.kit.requirement import Level
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import CaseResult


class CaseRunner:
    """Puts the cases of one dialect to servers."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.setup = setup_of(dialect)
        self.suite = load_suite(dialect)
        self.cases = {case.name: case for case in self.suite.cases}
        self._profile = self.setup.profile(self.suite, self.setup.server())
        self._routes = Routes(self.setup.server())
        self._levels = {item.id: item.level for item in self.suite.catalogue.requirements}
        self._requirements = {item.id: item for item in self.suite.catalogue.requirements}

    @asynccontextmanager
    async def damaged(self, interceptor: Interceptor) -> AsyncIterator[str]:
        """The address of a fresh correct server behind this interceptor."""
        async with served(self.setup.server()) as url, proxied(url, self._routes.name, interceptor) as address:
            yield address

    @asynccontextmanager
    async def wrong(self, fault: Fault) -> AsyncIterator[str]:
        """The address of a server that was written to be wrong."""
        async with served(self.setup.wrong(fault)) as url:
            yield url

    async def put(self, name: str, url: str, within: float, clears: bool = True) -> CaseResult:
        """What one case finds at this address, whether or not it clears away afterwards."""
        case = self.cases[name]
        suite = replace(self.suite, cases=(case,))
        wanted = [self._requirements[item] for item in case.requirements]
        target = Target(url, KEY, within, allow_destructive=True, is_disposable=not clears)
        return (await Runner(suite, target, self._profile, 1).run(wanted)).results[0]

    def binds(self, case: Case) -> bool:
        """Whether the case decides a MUST."""
        return any(self._levels[item] is Level.MUST for item in case.requirements)

    def musts(self, requirements: Iterable[str] | None = None) -> set[str]:
        """The MUSTs among these requirements, or all that a server can be held to."""
        ids = self._levels if requirements is None else requirements
        held = {item.id for item in self.suite.catalogue.requirements if not item.not_applicable}
        return {item for item in ids if self._levels[item] is Level.MUST and item in held}


@cache
def case_runner_of(dialect: str) -> CaseRunner:
    """The case runner of this dialect, made once per process."""
    return CaseRunner(dialect)
