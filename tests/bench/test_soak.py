"""The soak: its rule tells growing from resting; a short run of it is the proof `bench`."""

import asyncio

import pytest

from bench.soak import MIB, Sample, judge, report, slope
from bench.soak_clients import SoakClients, SoakCounts, repeat_visits


def samples(*mebibytes: float) -> list[Sample]:
    return [Sample(2.0 * n, 100 * n, int(size * MIB), 30, 8, 50, 1000) for n, size in enumerate(mebibytes, 1)]


def test_a_line_is_fitted() -> None:
    assert slope([0, 1, 2, 3], [1, 3, 5, 7]) == pytest.approx(2)
    assert slope([1, 1], [1, 9]) == 0


def test_what_comes_to_rest_does_not_grow_whatever_it_did_before() -> None:
    rested = samples(*range(50, 150, 5), *[150, 149, 152, 150] * 5)
    assert not judge(rested).grows
    assert abs(judge(rested).rise) < 2 * MIB


def test_what_rises_in_the_second_half_grows() -> None:
    verdict = judge(samples(*(50 + n for n in range(60))))
    assert verdict.grows
    assert verdict.rise == pytest.approx(30 * MIB, rel=0.05)
    assert verdict.per_thousand_turns == pytest.approx(10 * MIB, rel=0.05)
    assert "it keeps growing" in report(samples(1, 2), SoakCounts(), 0.0, verdict)


async def test_who_comes_when_it_is_over_comes_once() -> None:
    over, visits = asyncio.Event(), list[int]()
    over.set()

    async def visit(clients: SoakClients) -> None:
        visits.append(1)

    await repeat_visits(SoakClients("", None, SoakCounts()), visit, over)  # type: ignore[arg-type]
    assert visits == [1]