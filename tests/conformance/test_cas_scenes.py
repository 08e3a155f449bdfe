"""Scenes: what several CAS cases judge is brought about once, and one departure in it is one finding."""

import re
from collections.abc import Awaitable, Callable

import pytest

from conformance.faults.fault import load_faults
from conformance.faults.kill.setups import setup_of
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.examinations import made

Examine = Callable[..., Awaitable[Report]]
JUDGED = ("CAS-EV-01", "CAS-EV-03", "CAS-EV-10", "CAS-EV-12", "CAS-EV-13", "CAS-EV-14", "CAS-EV-17", "CAS-SSE-02")
"""Requirements that speak of a plain reply."""


@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        ("closed-after-turns", "CAS-SSE-07"),
        ("usage-untold", "CAS-EV-13"),
        ("permission-untold", "CAS-EV-14"),
        ("one-turn-for-all", "CAS-EV-10"),
        ("starts-untold", "CAS-EV-12"),
    ],
)
async def test_one_departure_is_one_finding(examine_cas: Examine, fault: str, finding: str) -> None:
    server = made("cas", load_faults("cas")[fault].server)
    report = await examine_cas(server, *dict.fromkeys((*JUDGED, finding)), within=5.0)
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == {finding}
    assert {item.because for item in report.of(Outcome.NOT_TESTABLE)} <= {(finding,)}


async def test_a_scene_is_played_once(examine_cas: Examine) -> None:
    report = await examine_cas(made("cas", setup_of("cas").server_type), "CAS-EV-13", "CAS-EV-17", "CAS-SSE-02")
    assert report.of(Outcome.FAILED) == ()
    talked = [set(re.findall(r"POST \S*/sessions/(sess_\w+)/events", result.transcript)) for result in report.results]
    assert len(talked) == 3
    assert len(set.intersection(*talked)) == 1
