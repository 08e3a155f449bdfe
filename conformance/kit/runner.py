"""The runner: runs the cases against the server, a few at a time, and always returns a report."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel
from yarl import URL

from conformance.kit.attribution import Ending, attributed
from conformance.kit.budget import most_telling_first
from conformance.kit.case import Case
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed, Unanswered
from conformance.kit.missing_features import as_offered, unoffered, without
from conformance.kit.observations import ObservationRun, Observations
from conformance.kit.proxy import proxy_for
from conformance.kit.requirement import Requirement
from conformance.kit.secrets import Redactor
from conformance.kit.suite import Suite, Target
from conformance.kit.transcript import Transcript
from conformance.kit.unreadable_answers import reading
from conformance.kit.verdict import CaseResult, Outcome, Report, find
from conformance.kit.wait_limits import WaitLimits

AT_ONCE = 4
ANSWERS_PER_CASE = 6
CLEARING_AWAY = 2
GIVE_UP_AFTER = 6

Watcher = Callable[[CaseResult], None]


@dataclass
class Patience:
    """Counts the cases in a row in which the server said nothing at all; after too many, the rest is not asked."""

    silent: int = 0

    @property
    def is_lost(self) -> bool:
        return self.silent >= GIVE_UP_AFTER

    def note(self, error: BaseException | None, transcript: Transcript) -> None:
        if not self.is_lost and not transcript.has_shared:
            self.silent = self.silent + 1 if _is_unanswered(error, transcript) else 0


class Runner:
    """Runs the cases of one suite against one server."""

    def __init__(
        self,
        suite: Suite,
        target: Target,
        profile: BaseModel,
        at_once: int = AT_ONCE,
        missing: Mapping[str, str] | None = None,
    ) -> None:
        """`missing` are the features that the server does not offer, beside those of the profile, and why."""
        self._suite = suite
        self._target = target
        absent = without(profile) | dict(missing or {})
        self._profile = as_offered(profile, suite.catalogue, absent)
        self._unoffered = unoffered(suite.catalogue, absent)
        self._places = asyncio.Semaphore(at_once)
        self._patience = Patience()
        self._waits = WaitLimits()
        self._observations = ObservationRun(
            self._opened, self._new_transcript, target.timeout * (ANSWERS_PER_CASE - 1)
        )
        self._transcripts: list[Transcript] = []
        self._begun = 0.0
        self._marks: dict[str, str] = {}

    async def run(
        self,
        requirements: Collection[Requirement],
        watcher: Watcher = lambda result: None,
        begun: Callable[[str, str], None] = lambda name, sentence: None,
    ) -> Report:
        """Decide these requirements; `begun` is called when a case begins, the watcher when it ends."""
        wanted = {item.id for item in requirements}
        asked = wanted - self._unoffered.keys()
        former = {item.id for item in requirements if item.id in asked and item.sentence == item.formerly}
        found = (case.within(asked, former) for case in self._suite.cases)
        cases = [case for case in found if case is not None]
        if self._target.budget is not None:
            cases = most_telling_first(cases, requirements)
        started, clock = datetime.now(UTC), asyncio.get_running_loop().time()
        self._begun = clock
        try:
            results = tuple(await asyncio.gather(*(self._put(case, watcher, begun) for case in cases)))
        finally:
            await self._observations.close(self._target.timeout * CLEARING_AWAY)
        results = self._covered(self._with_leftovers(results))
        findings = find(requirements, results, self._unoffered)
        others = [item for item in self._suite.catalogue.requirements if item.id not in wanted]
        return Report(
            dialect=self._suite.catalogue.dialect,
            title=self._suite.catalogue.title,
            url=str(URL(self._target.url).with_user(None)),
            started=started,
            seconds=asyncio.get_running_loop().time() - clock,
            findings=findings,
            results=results,
            aside=tuple(item for item in find(others, results) if item.outcome is Outcome.FAILED),
        )

    async def _put(self, case: Case, watcher: Watcher, begun: Callable[[str, str], None]) -> CaseResult:
        async with self._places:
            reason = self._reserve(case)
            if not reason:
                begun(case.name, case.sentence)
            result = _unasked(case, reason) if reason else await self._examine(case)
        watcher(result)
        return result

    async def _examine(self, case: Case) -> CaseResult:
        """Run the case in a task of its own, so that every exception and every timeout becomes a result."""
        clock = asyncio.get_running_loop().time
        transcript = self._new_transcript()
        departures = Departures(transcript)
        limit = self._target.timeout * ANSWERS_PER_CASE
        start = clock()
        task = asyncio.create_task(self._attempt(case, transcript, departures, limit))
        await asyncio.wait({task}, timeout=limit + self._target.timeout * CLEARING_AWAY)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        error = TimeoutError() if task.cancelled() else task.exception()
        error = self._checked(error, departures)
        self._patience.note(error, transcript)
        ending = attributed(case.requirements, error, departures.noted, limit)
        result = _result(case, ending, transcript, clock() - start)
        readings = tuple(departures.readings)
        return replace(result, is_unanswered=_is_unanswered(error, transcript), readings=readings)

    def _checked(self, error: BaseException | None, departures: Departures) -> BaseException | None:
        """The error, or an error of the suite if it names a requirement that does not exist."""
        owners = {item.owner for item in departures.noted}
        if isinstance(error, Failed) and error.owner is not None:
            owners.add(error.owner)
        unknown = sorted(owners - self._suite.catalogue.ids) if owners else []
        return KeyError(f"there is no requirement {unknown[0]}") if unknown else error

    def _new_transcript(self) -> Transcript:
        made = Transcript(self._redactor(), asyncio.get_running_loop().time)
        self._transcripts.append(made)
        return made

    def _with_leftovers(self, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        """The results, with what the shared stimuli left on the server added to the first case, if there is any."""
        left = tuple(path for seen in self._observations.found.values() for path in seen.transcript.left)
        return (replace(results[0], left=results[0].left + left), *results[1:]) if left else results

    def _redactor(self) -> Redactor:
        """A redactor of the key, the address and the profile's secrets; a secret has one number in all cases."""
        password, told = URL(self._target.url).password, getattr(self._profile, "secrets", ())
        known: Iterable[str] = [*([password] if password else []), *told]
        return Redactor(known, key=self._target.key, marks=self._marks)

    def _covered(self, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        """The results without the secrets that the server gave away in some other case."""
        returned = [secret for transcript in self._transcripts for secret in transcript.returned]
        if not returned:
            return results
        redactor = self._redactor()
        for secret in returned:
            redactor.learn(secret)
        return tuple(result.told(redactor.again) for result in results)

    async def _attempt(self, case: Case, transcript: Transcript, departures: Departures, limit: float) -> None:
        async with self._opened(transcript, departures) as examination:
            async with asyncio.timeout(limit):
                with reading(transcript):
                    await case.check(examination)

    def _opened(self, transcript: Transcript, departures: Departures) -> AbstractAsyncContextManager[Any]:
        """An examination for a case, or for a stimulus that several cases share."""
        observations = Observations(self._observations, transcript, departures)
        return self._suite.examination(self._target, self._profile, transcript, self._waits, observations)

    def _reserve(self, case: Case) -> str | None:
        """Why the case is not run; None if it is run."""
        if case.destructive and not self._target.allow_destructive:
            return f"not asked: it {case.destructive}; --allow-destructive allows it"
        if self._patience.is_lost:
            return f"not asked: the server left {GIVE_UP_AFTER} cases in a row without an answer"
        if self._target.budget is None:
            return None
        turns = sum(transcript.count(self._suite.turn) for transcript in self._transcripts)
        return self._target.budget.spent(turns, asyncio.get_running_loop().time() - self._begun)


async def obstacle(url: str, within: float) -> str | None:
    """Why the address cannot be reached; None if it can. The cases judge what the server answers."""
    try:
        place = proxy_for(url) or URL(url)
        async with asyncio.timeout(within):
            _, writer = await asyncio.open_connection(place.host, place.port, ssl=place.scheme == "https" or None)
    except TimeoutError:
        return f"no connection within {within:g} s"
    except (OSError, ValueError) as error:
        return str(error)
    writer.close()
    return None


def _is_unanswered(error: BaseException | None, transcript: Transcript) -> bool:
    """Whether a case ended in silence, and nothing came back before."""
    return isinstance(error, Unanswered) and not transcript.has_answer


def _unasked(case: Case, reason: str) -> CaseResult:
    return CaseResult(case.name, case.sentence, case.requirements, Outcome.NOT_TESTABLE, 0.0, "", reason=reason)


def _result(case: Case, ending: Ending, transcript: Transcript, seconds: float) -> CaseResult:
    found = CaseResult(
        name=case.name,
        sentence=case.sentence,
        requirements=case.requirements,
        outcome=ending.outcome,
        seconds=seconds,
        transcript="",
        expected=ending.expected,
        seen=ending.seen,
        reason=ending.reason,
        left=tuple(transcript.left),
        because=ending.because,
        departures=ending.departures,
        rest=ending.rest,
    )
    return replace(found.told(transcript.redact), transcript=str(transcript))
