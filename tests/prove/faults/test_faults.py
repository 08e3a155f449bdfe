"""Wrong servers before all the cases of the requirements that they break, and before whole suites; wrong clients."""

from pathlib import Path

import pytest

from conformance.clients.client_base import Wrong
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Verdict
from tests.support.conformance.allowed_variations import combined
from tests.support.conformance.client_drivers import assert_failed, wrong_clients
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.conformance.examinations import examine_server, made, stumbles
from tests.support.conformance.wrong_servers import FAULTS, assert_caught, recorded

EACH = [(dialect, name) for dialect, faults in FAULTS.items() for name in faults]
TOGETHER = [(name, faults) for name in EXAMINED for faults in examination_facts(name).combined_faults]


@pytest.mark.parametrize(("dialect", "name"), EACH, ids=[f"{dialect}-{name}" for dialect, name in EACH])
async def test_all_requirements_notice_the_fault(dialect: str, name: str, tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl" if name in recorded(dialect) else None
    await assert_caught(dialect, name, recording, by_all=True)


@pytest.mark.parametrize(("dialect", "names"), TOGETHER)
async def test_a_whole_examination_of_a_wrong_server_finishes(dialect: str, names: str) -> None:
    server = combined([FAULTS[dialect][name].server for name in names.split()])
    report = await examine_server(dialect, made(dialect, server), within=examination_facts(dialect).patience)
    assert len(report.results) == len(load_suite(dialect).cases)
    assert report.verdict is Verdict.FAILS
    assert stumbles(report) == []


@pytest.mark.parametrize(("dialect", "row"), wrong_clients())
def test_a_wrong_client_fails(dialect: str, row: Wrong) -> None:
    assert_failed(dialect, row)
