"""Nothing is held against servers that differ from the reference in ways the specification allows, nor against a
recording of one. All groups of variations before all requirements, slowly and recorded, and each variation by itself:
`make prove ARGS="--only false_alarms"`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.allowed_variations import ALONE, GROUPS, binding, together
from tests.support.conformance.examination_facts import examination_facts
from tests.support.conformance.examinations import PATIENT, examine_server, judged, made, stumbles, troubles

EVERY = 8
"""Every eighth requirement, others for each group; only the recorded server is held to all of them."""
RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]


@pytest.mark.parametrize(("dialect", "group"), GROUPS)
async def test_variations_are_not_held_against_a_server(dialect: str, group: str) -> None:
    wanted = binding(dialect)[GROUPS.index((dialect, group)) % EVERY :: EVERY]
    report = await examine_server(dialect, made(dialect, together(dialect, group)), *wanted)
    assert troubles(report) == []
    assert report.verdict is Verdict.CONFORMS


async def test_nor_are_they_against_its_recording(record_run: RecordRun) -> None:
    bound = binding("aap")
    path, live = await record_run("aap", made("aap", together("aap", "sparse")), *bound, within=PATIENT)
    assert troubles(live) == []
    assert live.verdict is Verdict.CONFORMS
    offline = judged("aap", path)
    failed = {item.requirement.id: item.grave[0].remark for item in offline.of(Outcome.FAILED)}
    assert {name: words for name, words in failed.items() if name in bound} == {}
    assert stumbles(offline) == []


@pytest.mark.parametrize("dialect", ALONE)
def test_every_variation_is_in_a_group(dialect: str) -> None:
    grouped = [name for names in examination_facts(dialect).variations.values() for name in names.split()]
    assert sorted([*grouped, *examination_facts(dialect).sparing]) == sorted(kind.name for kind in ALONE[dialect])
