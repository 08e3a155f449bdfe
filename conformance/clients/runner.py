"""The runner: plays one situation after the other, waits until the client is done, and judges what it sent."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from conformance.clients.client_traffic import ClientTraffic
from conformance.clients.judgement import DoesNotApply, Judgement
from conformance.clients.reply_queue import serving
from conformance.clients.situation import Cue, Situation
from conformance.clients.suite import ClientSuite, ScriptedServer, names
from conformance.kit.expect import Failed, NotTestable
from conformance.kit.requirement import Requirement
from conformance.kit.secrets import Redactor
from conformance.kit.transcript import Transcript
from conformance.kit.verdict import GRAVITY, CaseResult, Finding, Outcome, Report

NOTHING_DONE = "the client did nothing"
LINGER = 0.5
"""Seconds of quiet after which a client is taken to be done."""
LONGEST_LINGER = 5.0


class Driver(Protocol):
    """Has a client do what the cue says; it may return when the client is done, or never."""

    async def __call__(self, cue: Cue) -> None: ...


@dataclass(frozen=True)
class Examination:
    """Where the scripted server listens, which key the client must use, and how long a client may do nothing."""

    host: str = "127.0.0.1"
    port: int = 0
    key: str | None = None
    timeout: float = 60.0


@dataclass(frozen=True)
class Played:
    """A situation that is over."""

    situation: Situation
    traffic: ClientTraffic
    seconds: float


class ClientRunner:
    """Examines one client."""

    def __init__(self, suite: ClientSuite, examination: Examination, driver: Driver) -> None:
        self._suite, self._examination, self._driver = suite, examination, driver
        self._marks: dict[str, str] = {}
        self._inapplicable: dict[str, str] = {}

    async def run(
        self,
        requirements: Sequence[Requirement],
        announce: Callable[[Situation, str], None] = lambda situation, url: None,
        watcher: Callable[[CaseResult], None] = lambda result: None,
    ) -> Report:
        """Play the situations that decide these requirements, and judge them."""
        started, clock = datetime.now(UTC), asyncio.get_running_loop().time
        begun, server = clock(), self._suite.server()
        wanted = {item.id for item in requirements}
        judgements = [item for item in self._suite.judgements if item.requirement in wanted]
        played: list[Played] = []
        results: list[CaseResult] = []
        host, cancels = self._examination.host, server.cancels_requests
        async with serving(server.app(), host, self._examination.port, cancels=cancels) as port:
            url = f"http://{_reachable(host)}:{port}{server.mount}"
            for situation in self._suite.chosen(requirements):
                announce(situation, url)
                played.append(await self._play(server, situation, url))
                told = [self._judged(item, [played[-1]]) for item in judgements if situation.name in item.situations]
                results += told
                for result in told:
                    watcher(result)
        results += [self._judged(item, played) for item in judgements if not item.situations]
        return Report(
            dialect=self._suite.catalogue.dialect,
            title=self._suite.catalogue.title,
            url=url,
            started=started,
            seconds=clock() - begun,
            findings=tuple(self._finding(item, results) for item in requirements),
            results=tuple(results),
        )

    # -- playing -------------------------------------------------------------------------------------------------------

    async def _play(self, server: ScriptedServer, situation: Situation, url: str) -> Played:
        clock = asyncio.get_running_loop().time
        start, transcript = clock(), Transcript(Redactor(key=self._examination.key, marks=self._marks), clock)
        traffic = ClientTraffic(transcript, last_news=start)
        traffic.meta |= {"key": self._examination.key, "replies": situation.replies, **situation.options}
        transcript.remark("instruction: " + " ".join(situation.instruction.words))
        server.reply_queue.begin(situation, traffic)
        cue = Cue(situation.name, url, self._examination.key, situation.instruction)
        driving = asyncio.create_task(self._drive(cue, traffic))
        try:
            await self._enough(server, situation, traffic, driving)
        finally:
            driving.cancel()
            await asyncio.gather(driving, return_exceptions=True)
        return Played(situation, traffic, clock() - start)

    async def _drive(self, cue: Cue, traffic: ClientTraffic) -> None:
        """How a driver ends does not matter: what its client has sent does."""
        try:
            await self._driver(cue)
        finally:
            traffic.mark("driver done")

    async def _enough(
        self, server: ScriptedServer, situation: Situation, traffic: ClientTraffic, driving: "asyncio.Task[None]"
    ) -> None:
        """Wait until the client has done all there was to do, or does nothing any more."""
        over_since: float | None = None
        while True:
            over_since = (over_since or traffic.now) if server.reply_queue.is_over else None
            ends = [traffic.last_news + self._examination.timeout + situation.quiet]
            if driving.done():
                ends.append(traffic.last_news + LINGER)
            if over_since is not None:
                watched = over_since + situation.watch
                ends.append(min(max(watched, traffic.last_news + LINGER), watched + LONGEST_LINGER))
            if traffic.now >= min(ends):
                return
            traffic.changed.clear()
            try:
                async with asyncio.timeout_at(min(ends)):
                    await traffic.changed.wait()
            except TimeoutError:
                continue

    # -- judging -------------------------------------------------------------------------------------------------------

    def _judged(self, judgement: Judgement, played: Sequence[Played]) -> CaseResult:
        """What a judgement says of these situations: the first that failed, else the first that passed."""
        told = [self._result(judgement, item) for item in played]
        ranked = (Outcome.FAILED, Outcome.PASSED, Outcome.NOT_TESTABLE)
        return min(told, key=lambda item: ranked.index(item.outcome)) if told else _nothing(judgement)

    def _result(self, judgement: Judgement, played: Played) -> CaseResult:
        place = played.situation.name if judgement.situations else "everywhere"
        result = replace(_nothing(judgement), name=f"{place}.{judgement.name}", seconds=played.seconds)
        hide = played.traffic.transcript.redact
        result = replace(result, transcript=str(played.traffic.transcript), reason=None, outcome=Outcome.PASSED)
        try:
            if played.traffic.is_empty:
                raise NotTestable(NOTHING_DONE)
            judgement.check(played.traffic)
        except Failed as error:
            where = f"in the situation {played.situation.name}: "
            return replace(
                result, outcome=Outcome.FAILED, expected=hide(error.expected), seen=where + hide(error.seen)
            )
        except NotTestable as error:
            return replace(result, outcome=Outcome.NOT_TESTABLE, reason=str(error))
        except DoesNotApply as error:
            self._inapplicable[judgement.requirement] = str(error)
            return replace(result, outcome=Outcome.NOT_TESTABLE, reason=str(error))
        return result

    def _finding(self, requirement: Requirement, results: Sequence[CaseResult]) -> Finding:
        """The gravest outcome counts; a requirement that nowhere applied is told so."""
        found = tuple(item for item in results if requirement.id in item.requirements)
        reason = self._inapplicable.get(requirement.id)
        outcomes = {item.outcome for item in found}
        if reason is not None and outcomes == {Outcome.NOT_TESTABLE}:
            return Finding(requirement.model_copy(update={"not_applicable": reason}), found)
        if reason is not None:
            found = tuple(item for item in found if item.reason != reason)
        assert outcomes <= set(GRAVITY), "every outcome of a judgement has its rank"
        return Finding(requirement, found)


def _nothing(judgement: Judgement) -> CaseResult:
    return CaseResult(
        names(judgement)[0], judgement.sentence, (judgement.requirement,), Outcome.NOT_TESTABLE, 0.0, "",
        reason="no situation was played",
    )  # fmt: skip


def _reachable(host: str) -> str:
    """The name of this machine for clients on it."""
    return "127.0.0.1" if host in ("", "0.0.0.0", "::") else host  # noqa: S104
