"""Correct servers are examined again and again: slowly, each variation alone, and many variations slowly."""

from pathlib import Path

import pytest

from conformance.faults.cas.server import CasServer
from conformance.faults.cas.variations import Sparing
from conformance.faults.false_alarms import FalseAlarmSearch
from conformance.faults.kill.setups import SETUPS
from conformance.faults.steps import Variant, variant
from conformance.kit.requirement import Level
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.allowed_variations import ALONE, GROUPS, binding, together
from tests.support.conformance.examination_facts import examination_facts
from tests.support.conformance.examinations import (
    PATIENT,
    examine_server,
    examine_slow_server,
    judged,
    made,
    record_server,
)

SEEDS = range(1, 6)
EACH = [(dialect, kind) for dialect, kinds in ALONE.items() for kind in kinds]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dialect", SETUPS)
async def test_nothing_is_held_against_a_slow_server(dialect: str, seed: int) -> None:
    search = FalseAlarmSearch(
        dialect, runs=0, jitter=0.02 * seed, seed=seed, within=PATIENT, with_variations=False, at_once=16
    )
    rounds = [item async for item in search.rounds()]
    assert [(item.name, item.alarms) for item in rounds] == [(f"run with up to {20 * seed} ms of delay", ())]


@pytest.mark.parametrize(("dialect", "group"), GROUPS)
async def test_nothing_is_held_against_slow_variations(dialect: str, group: str) -> None:
    server = made(dialect, together(dialect, group))
    assert held_against(await examine_slow_server(dialect, server, *binding(dialect), jitter=0.02)) == []


@pytest.mark.parametrize(("dialect", "kind"), EACH, ids=[f"{dialect}-{kind.name}" for dialect, kind in EACH])
async def test_nothing_is_held_against_each_variation_alone(dialect: str, kind: Variant) -> None:
    """At all levels; servers that do without what is only a SHOULD are held to every MUST."""
    is_sparing = kind.name in examination_facts(dialect).sparing
    wanted = musts_of(dialect) if is_sparing else binding(dialect)
    assert held_against(await examine_server(dialect, made(dialect, kind), *wanted)) == []


@pytest.mark.parametrize(("dialect", "group"), GROUPS)
async def test_nothing_is_held_against_the_recording_of_a_variation(
    dialect: str, group: str, tmp_path: Path
) -> None:
    path, bound = tmp_path / "recording.jsonl", binding(dialect)
    await record_server(dialect, made(dialect, together(dialect, group)), path, *bound)
    failed = {item.requirement.id: item.grave[0].remark for item in judged(dialect, path).of(Outcome.FAILED)}
    assert {name: words for name, words in failed.items() if name in bound} == {}


async def test_no_must_depends_on_a_should(tmp_path: Path) -> None:
    path, musts = tmp_path / "recording.jsonl", musts_of("cas")
    assert held_against(await record_server("cas", made("cas", variant(CasServer, Sparing)), path, *musts)) == []
    assert {item.requirement.id for item in judged("cas", path).of(Outcome.FAILED)}.intersection(musts) == set()


def musts_of(dialect: str) -> list[str]:
    return [item.id for item in load_suite(dialect).catalogue.requirements if item.level is Level.MUST]


def held_against(report: Report) -> list[str]:
    return [f"{item.requirement.id}: {item.grave[0].remark}" for item in report.findings if item.grave]
