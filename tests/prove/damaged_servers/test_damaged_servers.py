"""Every dialect, with many seeds, from little damage to much."""

import pytest

from conformance.kit.suite import load_suite
from conformance.kit.verdict import Verdict
from tests.support.conformance.damaged_servers import DAMAGED, examine_damaged


@pytest.mark.parametrize("share", [0.01, 0.02, 0.04, 0.1, 0.3])
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("dialect", DAMAGED)
async def test_no_examiner_breaks_at_a_damaged_server(dialect: str, seed: int, share: float) -> None:
    report, broken = await examine_damaged(dialect, seed, share)
    assert len(report.results) == len(load_suite(dialect).cases)
    assert report.verdict in (Verdict.FAILS, Verdict.INCOMPLETE)
    assert broken == []
