"""A failure is charged to the requirement whose sentence it breaks; the rest is not testable because of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served
from conformance.kit import expect
from conformance.kit.baseline import Baseline, Entry
from conformance.kit.case import Case
from conformance.kit.expect import Failed, NotTestable, Unanswered
from conformance.kit.runner import Runner
from conformance.kit.suite import Suite, Target
from conformance.kit.verdict import BLOCKED, Outcome, Report, Verdict

ONE, TWO, OTHER = "AAP-META-01", "AAP-META-02", "AAP-SESS-01"
P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE
Check = Callable[[Any], Awaitable[None]]


async def examined(aap: Suite, *cases: tuple[Sequence[str], Check], only: Sequence[str] = ()) -> Report:
    """What comes of these checks, each a case of its requirements, before a correct server."""
    made = tuple(Case(f"a.{number}", tuple(ids), "A case.", check) for number, (ids, check) in enumerate(cases))
    ids = set(only) or {name for case in made for name in case.requirements} | {OTHER}
    wanted = [item for item in aap.catalogue.requirements if item.id in ids]
    async with served(AapServer()) as url:
        return await Runner(replace(aap, cases=made), Target(url, None, 5.0), aap.read_profile(), 1).run(wanted)


def outcomes(report: Report) -> dict[str, Outcome]:
    return {item.requirement.id: item.outcome for item in report.findings}


def raising(error: Exception) -> Check:
    async def check(exam: Any) -> None:
        raise error

    return check


async def test_a_failure_without_an_owner_is_one_of_all_requirements_of_the_case(aap: Suite) -> None:
    report = await examined(aap, ([ONE, TWO], raising(Failed("a", "b"))))
    assert outcomes(report) == {ONE: F, TWO: F, OTHER: N}
    assert (report.results[0].failed, report.results[0].because) == ((ONE, TWO), None)


async def test_an_owner_among_the_requirements_fails_alone(aap: Suite) -> None:
    report = await examined(aap, ([ONE, TWO], raising(Failed("a", "b", TWO))))
    assert outcomes(report) == {ONE: N, TWO: F, OTHER: N}
    first, second, _ = report.findings
    assert (first.because, second.because, first.count) == ((TWO,), (), BLOCKED)
    assert [(it.expected, it.seen) for it in second.grave] == [("a", "b")]
    assert [it.remark for it in first.grave] == [f"not testable because {TWO} failed"]
    assert (report.results[0].outcome, report.results[0].failed) == (F, (TWO,))


async def test_an_owner_elsewhere_fails_with_the_evidence_of_the_case(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        await exam.http.ask("GET", "/meta")
        with expect.owned(OTHER):
            expect.equal("the moon", "round", "square")

    report = await examined(aap, ([ONE], check), ([TWO], check))
    assert outcomes(report) == {ONE: N, TWO: N, OTHER: F}
    found = report.findings[-1]
    assert [(it.name, it.expected, it.seen) for it in found.grave] == [
        ("a.0", "the moon: round", "square"), ("a.1", "the moon: round", "square"),
    ]  # fmt: skip
    assert "GET /meta" in found.grave[0].transcript
    assert [(it.outcome, it.because) for it in report.results] == [(N, OTHER), (N, OTHER)]
    (cause,) = report.causes
    assert (cause.finding.requirement.id, [it.requirement.id for it in cause.blocked]) == (OTHER, [ONE, TWO])
    assert (report.explained, report.verdict) == ("1 cause explains 3 findings", Verdict.FAILS)


@pytest.mark.parametrize("is_misleading", [False, True])
async def test_a_failure_after_a_misleading_departure_is_because_of_it(aap: Suite, is_misleading: bool) -> None:
    async def check(exam: Any) -> None:
        exam.http.departures.note(OTHER, "a", "b", is_misleading=is_misleading)
        raise Failed("c", "d", TWO)

    report = await examined(aap, ([ONE], check), ([TWO], raising(NotTestable("never"))))
    assert outcomes(report) == {ONE: N, TWO: N if is_misleading else F, OTHER: F}


async def test_silence_after_a_misleading_departure_is_silence(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        exam.http.departures.note(OTHER, "a", "b", is_misleading=True)
        raise Unanswered("c", "d")

    assert outcomes(await examined(aap, ([ONE], check))) == {ONE: F, OTHER: F}


async def test_the_innermost_owner_counts() -> None:
    with pytest.raises(Failed) as caught, expect.owned(ONE), expect.owned(TWO):
        expect.fail("a", "b", OTHER)
    assert caught.value.owner == OTHER
    with pytest.raises(Failed) as caught, expect.owned(ONE), expect.owned(TWO):
        expect.fail("a", "b")
    assert caught.value.owner == TWO


async def test_a_departure_is_noted_and_the_case_goes_on(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        exam.http.departures.note(OTHER, "a", "b")
        with exam.http.departures.noting(TWO):
            exam.schemas.fit("created", {}, "nothing at all")

    report = await examined(aap, ([ONE], check))
    assert outcomes(report) == {ONE: P, OTHER: F}
    assert [item.requirement.id for item in report.aside] == [TWO]
    assert f"departs from {OTHER}: expected a; seen: b" in report.results[0].transcript
    assert (report.results[0].is_clean, report.results[0].failed) == (False, (OTHER, TWO))


async def test_a_departure_from_one_of_several_leaves_the_others_as_they_are(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        exam.http.departures.note(TWO, "a", "b")

    report = await examined(aap, ([ONE, TWO], check))
    assert outcomes(report) == {ONE: P, TWO: F, OTHER: N}
    assert (report.results[0].outcome, report.results[0].expected, report.results[0].seen) == (F, "a", "b")


async def test_what_stumbles_after_a_departure_is_not_testable_because_of_it(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        body = (await exam.http.ask("GET", "/meta")).json()
        exam.http.departures.note(OTHER, "a", "b")
        body["nobody has this"]

    report = await examined(aap, ([ONE], check))
    assert outcomes(report) == {ONE: N, OTHER: F}
    assert report.findings[0].because == (OTHER,)


async def test_silence_is_not_noted_but_stays_a_failure_of_the_owner(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        with exam.http.departures.noting(OTHER):
            raise Unanswered("an answer", "none came")

    assert outcomes(await examined(aap, ([ONE], check))) == {ONE: N, OTHER: F}


async def test_a_scene_that_fails_for_a_known_reason_is_not_testable_because_of_it(aap: Suite) -> None:
    async def owned(exam: Any) -> None:
        with expect.preparing("a scene"):
            expect.fail("a", "b", OTHER)

    async def unowned(exam: Any) -> None:
        with expect.preparing("a scene"):
            expect.fail("a", "b")

    report = await examined(aap, ([ONE], owned), ([TWO], unowned))
    assert [item.because for item in report.findings] == [(OTHER,), (), ()]
    assert outcomes(report) == {ONE: N, TWO: N, OTHER: F}


async def test_what_was_not_asked_for_is_mentioned_and_not_counted(aap: Suite) -> None:
    report = await examined(aap, ([ONE], raising(Failed("a", "b", OTHER))), only=[ONE])
    assert outcomes(report) == {ONE: N}
    (cause,) = report.causes
    assert (cause.finding.requirement.id, cause.is_asked) == (OTHER, False)
    assert (report.explained, report.verdict, report.exit_code) == ("1 cause explains 1 finding", Verdict.FAILS, 1)


async def test_an_owner_that_is_no_requirement_is_a_mistake_of_the_examiner(aap: Suite) -> None:
    report = await examined(aap, ([ONE], raising(Failed("a", "b", "AAP-MOON-01"))))
    assert report.results[0].reason == "the examiner stumbled: KeyError: 'there is no requirement AAP-MOON-01'"
    assert outcomes(report) == {ONE: N, OTHER: N}


async def test_what_is_blocked_is_counted_apart(aap: Suite) -> None:
    report = await examined(aap, ([ONE], raising(Failed("a", "b", OTHER))), ([TWO], raising(NotTestable("so it is"))))
    counts = {"passed": 0, "failed": 1, BLOCKED: 1, "not testable": 1, "not offered": 0, "not applicable": 0}
    assert report.by_level()["must"] == counts


async def test_what_a_known_failure_blocks_is_known(aap: Suite) -> None:
    report = await examined(aap, ([ONE], raising(Failed("a", "b", OTHER))))
    entry = Entry(requirement=OTHER, reason="It is being mended.", expires=date(2999, 1, 1))
    held = Baseline((entry,), ("here:1",)).held_against(report)
    assert held.standing is not None and set(held.standing.known) == {ONE, OTHER}
    assert held.exit_code == 0
