"""A server that dies at any moment, under load in all dialects, breaks no promise; a careless one is found out."""

import signal
from pathlib import Path

import pytest

from tests.prove.crash.history import Kind
from tests.prove.crash.kill_runs import run


@pytest.mark.timeout(900)
async def test_nothing_is_lost_when_it_is_killed(tmp_path: Path) -> None:
    report = await run(tmp_path, 40, seed=7)
    assert report.violations == [], str(report)
    assert report.running > 5, f"turns ran when it died: {report}"
    assert report.waiting > 5, f"turns waited for people when it died: {report}"


@pytest.mark.timeout(900)
async def test_nothing_is_lost_when_it_is_told_to_stop(tmp_path: Path) -> None:
    report = await run(tmp_path, 8, seed=11, number=signal.SIGTERM)
    assert report.violations == [], str(report)
    assert report.things > 100, str(report)


@pytest.mark.timeout(900)
async def test_a_server_that_shows_before_it_stores_is_found_out(tmp_path: Path) -> None:
    report = await run(tmp_path, 6, seed=3, careless=True)
    assert {violation.kind for violation in report.violations} & {Kind.LOST, Kind.GAP}, str(report)
