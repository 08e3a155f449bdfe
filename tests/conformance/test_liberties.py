"""Nothing is held against servers that differ from the reference in ways the specification allows: neither if they are
slow, too, nor by a recording. Each liberty by itself: `make prove ARGS="--only alarms"`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.examinations import PATIENT, examine_slow_server, judged, made, stumbles, troubles
from tests.support.conformance.liberties import ALONE, APART, TOGETHER, binding, together

RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]
RECORDED = ("aap-wordy", "aap-sparse", "blade-sparse", "cas-sparse", "zenflux-sparse", "zenflux-terse")
"""Groups whose liberties a recording shows; the recordings of the others are judged in the proof."""
GROUPS = [(dialect, group) for dialect, groups in TOGETHER.items() for group in groups]


@pytest.mark.parametrize(("dialect", "group"), [it for it in GROUPS if "-".join(it) not in RECORDED])
async def test_liberties_are_not_held_against_a_slow_server(dialect: str, group: str) -> None:
    server = made(dialect, together(dialect, group))
    report = await examine_slow_server(dialect, server, *binding(dialect), jitter=0.02)
    assert troubles(report) == []
    assert report.verdict is Verdict.CONFORMS


@pytest.mark.parametrize(("dialect", "group"), [it for it in GROUPS if "-".join(it) in RECORDED])
async def test_nor_are_they_against_its_recording(record_run: RecordRun, dialect: str, group: str) -> None:
    bound = binding(dialect)
    path, live = await record_run(dialect, made(dialect, together(dialect, group)), *bound, within=PATIENT)
    assert troubles(live) == []
    assert live.verdict is Verdict.CONFORMS
    offline = judged(dialect, path)
    failed = {item.requirement.id: item.grave[0].remark for item in offline.of(Outcome.FAILED)}
    assert {name: words for name, words in failed.items() if name in bound} == {}
    assert stumbles(offline) == []


@pytest.mark.parametrize("dialect", ALONE)
def test_every_liberty_is_taken(dialect: str) -> None:
    taken = [name for names in TOGETHER[dialect].values() for name in names.split()]
    assert sorted([*taken, *APART.get(dialect, ())]) == sorted(kind.__name__ for kind in ALONE[dialect])
