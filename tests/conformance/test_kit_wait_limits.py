"""What was waited for in vain is waited for briefly, until it comes; all times are those of the simulated clock."""

import asyncio

import pytest
from aiohttp import web

from conformance.faults.fault import load_faults
from conformance.faults.local_server import served
from conformance.kit.expect import TOO_QUICK
from conformance.kit.missing_features import missing
from conformance.kit.runner import Runner
from conformance.kit.server_probe import locate
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Outcome, Verdict
from conformance.kit.wait_limits import MANY, Wait, WaitLimits, route
from tests.support.conformance.examination_facts import EXAMINED, KEY
from tests.support.conformance.examinations import (
    SERVERS,
    examine_server,
    examine_slow_server,
    made,
    troubles,
)

FULL, BRIEF = Wait(10.0), Wait(1.0, is_brief=True)


async def lasting(waits: WaitLimits, kind: str, seconds: float) -> float:
    """How long is waited for something of this kind that takes so many seconds."""
    begun = asyncio.get_running_loop().time()
    try:
        async with waits.bounded(kind, 10.0):
            await asyncio.sleep(seconds)
        waits.came(kind)
    except TimeoutError:
        pass
    return asyncio.get_running_loop().time() - begun


async def test_what_was_waited_for_in_vain_is_waited_for_briefly() -> None:
    waits = WaitLimits()
    waited = [await lasting(waits, kind, 99) for kind in ("the end", "the end", "an answer", "the end")]
    assert waited == pytest.approx([10, 1, 10, 1])


async def test_what_comes_after_all_is_waited_for_at_full_length_again() -> None:
    waits = WaitLimits()
    waited = [await lasting(waits, "the end", seconds) for seconds in (99, 0.5, 4, 99, 99)]
    assert waited == pytest.approx([10, 0.5, 4, 10, 8])


async def test_a_brief_wait_is_twice_the_pace_of_the_server() -> None:
    waits = WaitLimits()
    await lasting(waits, "an answer", 3)
    assert [await lasting(waits, "the end", 99) for _ in range(2)] == pytest.approx([10, 6])
    await lasting(waits, "an answer", 7)
    assert waits.wait("the end", 10.0) == FULL


async def test_what_never_came_is_waited_for_briefly_after_many_waits_in_vain() -> None:
    waits = WaitLimits()
    waits.came("an answer")
    for place in range(MANY):
        assert await lasting(waits, f"event {place}", 99) == pytest.approx(10)
    assert waits.wait("another event", 10.0) == BRIEF
    assert waits.wait("an answer", 10.0) == FULL


async def test_a_goal_is_the_kind_of_all_waits_on_the_way() -> None:
    waits = WaitLimits()
    with pytest.raises(TimeoutError), waits.goal("session_end"):
        async with waits.bounded("a frame", 10.0):
            await asyncio.sleep(99)
    assert waits.is_vain("session_end")
    with waits.goal("session_end"):
        assert waits.wait("a frame", 10.0) == BRIEF
    assert not waits.is_vain("session_end")
    assert waits.wait("a frame", 10.0) == FULL
    with waits.goal("session_end"):
        assert waits.wait("a frame", 10.0) == FULL


async def test_a_time_of_its_own_is_not_remembered() -> None:
    waits = WaitLimits()
    with pytest.raises(TimeoutError):
        async with waits.bounded("silence", 10.0, within=0.6):
            await asyncio.sleep(99)
    assert waits.wait("silence", 10.0) == FULL


def test_the_same_question_about_another_thing_is_of_the_same_kind() -> None:
    assert route("GET /sessions/s-1/turns?limit=3") == route("GET /sessions/s-2/turns")
    assert route("GET /sessions/s-1/turns") != route("GET /sessions/s-1/events")


def test_a_report_says_that_a_wait_was_brief() -> None:
    assert (str(FULL), str(BRIEF)) == ("10 s", "1 s (it was waited for longer before, in vain)")


async def test_a_server_that_never_ends_its_runs_is_examined_in_less_than_two_minutes() -> None:
    """A half of the requirements in a half of that time; it was 200 s as long as every wait was a full one."""
    server = made("zenflux", load_faults("zenflux")["no-end"].server)
    wanted = [item.id for item in load_suite("zenflux").catalogue.requirements][::2]
    report = await examine_server("zenflux", server, *wanted, within=15.0, at_once=4, clears=False)
    assert report.verdict is Verdict.FAILS
    assert report.seconds < 60


class HeadsAlone:
    """A server that sends the head of every answer, and never its body."""

    mount = ""

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "100"})
        await answer.prepare(request)
        await asyncio.Event().wait()
        return answer


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_a_server_of_heads_without_bodies_is_examined_in_less_than_two_minutes(dialect: str) -> None:
    suite = load_suite(dialect)
    async with served(HeadsAlone()) as url:
        target = Target(url, KEY, 10.0)
        begun = asyncio.get_running_loop().time()
        place, absent = await locate(suite, target), await missing(suite.catalogue, target)
        report = await Runner(suite, place, suite.read_profile(), missing=absent).run(suite.catalogue.requirements)
        assert asyncio.get_running_loop().time() - begun < 120
    assert absent == {}
    assert report.verdict is Verdict.FAILS


async def test_a_slow_server_is_waited_for() -> None:
    wanted = [item.id for item in load_suite("aap").catalogue.requirements][::4]
    report = await examine_slow_server("aap", SERVERS["aap"](), *wanted, jitter=3.0)
    assert report.of(Outcome.FAILED) == ()
    assert [item for item in troubles(report) if TOO_QUICK not in item] == []
