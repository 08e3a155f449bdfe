"""Servers that damage what they say at random: examiners say what is wrong and do not break.

More: `make prove ARGS="--only damage --only faults"`.
"""

import random

import pytest

from conformance.faults.value_damage import damaged
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Verdict
from tests.support.conformance.damaged_servers import DAMAGED, examine_damaged


def test_damage_is_done() -> None:
    value = {"a": [1, {"b": 2}]}
    seen = [damaged(value, random.Random(seed)) for seed in range(50)]
    assert value == {"a": [1, {"b": 2}]}
    assert all(item != value for item in seen)
    assert {"a": [1, {}]} in seen


@pytest.mark.parametrize("dialect", DAMAGED)
async def test_no_examiner_breaks_at_a_damaged_server(dialect: str) -> None:
    """Those of AAP before all requirements, the others before every third."""
    suite = load_suite(dialect)
    wanted = [item.id for item in suite.catalogue.requirements][:: 1 if dialect == "aap" else 3]
    report, broken = await examine_damaged(dialect, 1, 0.1, *wanted)
    assert len(report.results) == sum(bool(set(wanted).intersection(case.requirements)) for case in suite.cases)
    assert report.verdict is Verdict.FAILS
    assert broken == []
