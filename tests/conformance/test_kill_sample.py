"""A few flaws of every dialect: what breaks a MUST is noticed, and what is allowed is not held against a server.

A sample of 300 flaws and a clean run: `make prove ARGS="--only kill"`; all flaws: `make kill`.
"""

import pytest
import yaml

from conformance.faults.kill.case_runner import case_runner_of
from conformance.faults.kill.examiner import FlawCases, FlawExaminer, several
from conformance.faults.kill.flaw import Flaw
from conformance.faults.kill.orders import read_orders
from tests.support.conformance.examination_facts import EXAMINED
from tests.support.dialect_parts import document


def flaws(dialect: str, kind: str) -> list[tuple[Flaw, str]]:
    sample = yaml.safe_load(document(dialect, "kill_sample.yaml").read_text("utf-8"))
    return [(Flaw(kind, place, path), case) for kind, place, path, case in sample[kind]]


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_flaws_are_noticed(dialect: str) -> None:
    case_runner = case_runner_of(dialect)
    examiner, chosen = FlawExaminer(case_runner, read_orders(dialect)), flaws(dialect, "noticed")
    assert {flaw.family for flaw, _ in chosen} >= {"field", "event", "answer"}
    results = await several([examiner.examine(FlawCases(flaw, (case,))) for flaw, case in chosen])
    assert [result.name for result in results if not result.is_killed] == []
    assert [result.name for result in results if not result.strikes] == []
    assert [result.name for result in results if not case_runner.musts(result.requirements)] == []


@pytest.mark.parametrize("dialect", EXAMINED)
async def test_what_the_protocol_allows_is_tolerated(dialect: str) -> None:
    examiner, chosen = FlawExaminer(case_runner_of(dialect), read_orders(dialect)), flaws(dialect, "tolerated")
    assert [alarm for flaw, case in chosen for alarm in await examiner.alarms([flaw], case)] == []
    assert len(chosen) > 1
