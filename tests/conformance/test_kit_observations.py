"""What several cases judge is brought about once, shown to each, and cleared away at the end of the run."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served
from conformance.kit import expect
from conformance.kit.budget import Budget
from conformance.kit.case import Case
from conformance.kit.expect import Failed
from conformance.kit.runner import Runner
from conformance.kit.suite import Suite, Target
from conformance.kit.verdict import Outcome, Report

IDS = ("AAP-META-01", "AAP-META-02", "AAP-META-03")
P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE
Check = Callable[[Any], Awaitable[None]]


async def examined(aap: Suite, *checks: Check, at_once: int = 1, budget: Budget | None = None) -> tuple[Report, Any]:
    """What comes of these checks, each a case of a requirement of its own; and the server afterwards."""
    cases = tuple(
        Case(f"a.{name}", (name,), "A case.", check) for name, check in zip(IDS, checks, strict=False)
    )
    wanted = [item for item in aap.catalogue.requirements if item.id in IDS[: len(checks)]]
    server = AapServer()
    async with served(server) as url:
        target = Target(url, None, 5.0, budget=budget)
        suite = replace(aap, cases=cases, turn=re.compile(r"\APOST /sessions"))
        return await Runner(suite, target, aap.read_profile(), at_once).run(wanted), server


async def session(exam: Any) -> str:
    agent = await exam.agent()
    reply = await exam.http.ask("POST", "/sessions", {"agent": {"name": agent.name}})
    exam._made.append(reply.json()["sessionId"])
    return str(exam._made[-1])


async def looks(exam: Any) -> None:
    made = await exam.http.observations.once("a session", session)
    listed = await exam.http.ask("GET", f"/sessions/{made}")
    expect.status(listed, 200)


@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_stimulus_is_carried_out_once_and_kept_to_the_end(aap: Suite, at_once: int) -> None:
    report, server = await examined(aap, looks, looks, looks, at_once=at_once)
    assert [result.outcome for result in report.results] == [P, P, P], [it.remark for it in report.results]
    shown = [result.transcript.count("POST /sessions") for result in report.results]
    assert shown == [1, 1, 1]
    assert all("observed once, for several cases: a session" in result.transcript for result in report.results)
    assert server.sessions.state.sessions == {}
    assert report.left == ()


async def test_a_failure_is_everybodys_and_each_finds_its_own_owner(aap: Suite) -> None:
    asked: list[Any] = []

    async def make(exam: Any) -> None:
        asked.append(exam)
        raise Failed("a", "b")

    async def owned(exam: Any) -> None:
        with expect.owned(IDS[2]):
            await exam.http.observations.once("it", make)

    async def plain(exam: Any) -> None:
        await exam.http.observations.once("it", make)

    report, _ = await examined(aap, owned, plain, plain)
    assert len(asked) == 1
    assert [(it.outcome, it.because) for it in report.results] == [(N, IDS[2]), (F, None), (F, None)]


async def test_departures_of_the_stimulus_are_those_of_every_case(aap: Suite) -> None:
    async def make(exam: Any) -> Any:
        body = (await exam.http.ask("GET", "/meta")).json()
        exam.http.departures.note(IDS[2], "a", "b")
        return body

    async def stumbling(exam: Any) -> None:
        (await exam.http.observations.once("meta", make))["nobody has this"]

    report, _ = await examined(aap, stumbling, stumbling, looks)
    assert [(it.outcome, it.because) for it in report.results] == [(N, IDS[2]), (N, IDS[2]), (P, None)]
    assert [item.outcome for item in report.findings] == [N, N, F]


async def test_a_case_that_is_stopped_does_not_stop_what_others_wait_for(aap: Suite) -> None:
    made = asyncio.Event()

    async def make(exam: Any) -> str:
        await made.wait()
        return "made"

    async def hasty(exam: Any) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await exam.http.observations.once("slow", make)
        made.set()

    async def patient(exam: Any) -> None:
        assert await exam.http.observations.once("slow", make) == "made"

    report, _ = await examined(aap, hasty, patient)
    assert [result.outcome for result in report.results] == [P, P], [it.remark for it in report.results]


async def test_a_budget_pays_for_a_stimulus_once(aap: Suite) -> None:
    report, _ = await examined(aap, looks, looks, looks, budget=Budget(turns=2))
    assert [result.outcome for result in report.results] == [P, P, P], [it.remark for it in report.results]


async def test_what_another_stimulus_stands_on_is_cleared_away_after_it(aap: Suite) -> None:
    made: dict[str, str] = {}
    deleted: list[str] = []

    async def ground(exam: Any) -> None:
        made["ground"] = await session(exam)

    async def on_it(exam: Any) -> None:
        await exam.http.observations.once("ground", ground)
        made["scene"] = await session(exam)

    async def watched(exam: Any) -> None:
        await exam.http.observations.once("scene", on_it)
        run = exam.http.observations.run
        for key, seen in run.found.items():
            seen.work.add_done_callback(lambda _, key=key: deleted.append(key))

    report, server = await examined(aap, watched)
    assert [result.outcome for result in report.results] == [P], [it.remark for it in report.results]
    assert (list(made), deleted) == (["ground", "scene"], ["scene", "ground"])
    assert server.sessions.state.sessions == {}
