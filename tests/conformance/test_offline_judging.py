"""Wrong servers and their recordings: in both, the named requirements fail. Right ones: `test_reference`."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.faults.reference import ReferenceServer
from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.offline.judging import load_offline, mounted
from conformance.offline.reading import read
from conformance.offline.rule import disagreements
from conformance.offline.tape import Unusable
from tests.support.conformance.examinations import KEY, judged, stumbles
from tests.support.conformance.wrong_servers import RECORDED, assert_caught

RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]
PASSED_AT_LEAST = {"aap": 40, "cas": 62, "zenflux": 194, "blade": 153}
WRONG = [(dialect, name) for dialect, names in RECORDED.items() for name in names.split()]


@pytest.mark.parametrize("dialect", dialects())
def test_every_requirement_has_a_rule_or_a_reason(dialect: str) -> None:
    assert disagreements(load_suite(dialect).catalogue, load_offline(dialect)) == []


@pytest.mark.parametrize("dialect", dialects())
async def test_a_right_server_fails_nothing(recorded: Callable[[str], Awaitable[Any]], dialect: str) -> None:
    whole = await recorded(dialect)
    report = whole.offline
    assert [(item.requirement.id, item.grave[0].remark) for item in report.of(Outcome.FAILED)] == []
    assert stumbles(report) == []
    assert len(report.of(Outcome.PASSED)) >= PASSED_AT_LEAST[dialect]
    assert all(result.reason for item in report.of(Outcome.NOT_TESTABLE) for result in item.grave)
    assert KEY not in whole.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(("dialect", "name"), WRONG, ids=[f"{dialect}-{name}" for dialect, name in WRONG])
async def test_a_wrong_server_is_caught(tmp_path: Path, dialect: str, name: str) -> None:
    await assert_caught(dialect, name, tmp_path / "recording.jsonl")


async def test_what_was_not_seen_is_not_testable(record_run: RecordRun) -> None:
    path, _ = await record_run("aap", ReferenceServer(key=KEY), "AAP-META-01")
    report = judged("aap", path)
    passed = {item.requirement.id for item in report.of(Outcome.PASSED)}
    assert report.verdict is Verdict.INCOMPLETE
    assert "AAP-META-01" in passed
    assert "AAP-SSE-01" not in passed
    (stream,) = [item for item in report.findings if item.requirement.id == "AAP-SSE-01"]
    assert {result.reason for result in stream.results} == {
        "no evidence: the recording holds no event `turn_start`",
        "no evidence: the recording holds no streamed turn",
    }


async def test_half_the_evidence_is_not_enough(record_run: RecordRun) -> None:
    """AAP-SESS-10 speaks of deleting and of what comes after: a recording of deletions alone leaves it open."""
    path, _ = await record_run("aap", ReferenceServer(key=KEY), "AAP-SESS-01")
    (found,) = [item for item in judged("aap", path).findings if item.requirement.id == "AAP-SESS-10"]
    assert {result.outcome for result in found.results} == {Outcome.PASSED, Outcome.NOT_TESTABLE}
    assert found.outcome is Outcome.NOT_TESTABLE


async def test_a_recording_of_another_dialect_is_refused(record_run: RecordRun) -> None:
    path, _ = await record_run("aap", ReferenceServer(key=KEY), "AAP-META-01")
    with pytest.raises(Unusable, match=r"recording of aap, not of cas; try: dragoman conform aap --transcript"):
        mounted(read(path), "cas")


def test_secrets_of_a_har_file_do_not_reach_the_report(tmp_path: Path) -> None:
    secret = "sk-live-0123456789abcdef"
    answer = {"sessionId": 7, "token": secret}
    entry = {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 1,
        "request": {
            "method": "GET",
            "url": f"http://localhost/aap/sessions/one?token={secret}",
            "headers": [{"name": "Authorization", "value": f"Bearer {secret}"}],
        },
        "response": {"status": 200, "headers": [], "content": {"text": orjson.dumps(answer).decode()}},
    }
    path = tmp_path / "traffic.har"
    path.write_bytes(orjson.dumps({"log": {"entries": [entry]}}))
    report = judged("aap", path)
    (found,) = [item for item in report.of(Outcome.FAILED) if item.requirement.id == "AAP-SESS-07"]
    assert "(at entry 1, GET /sessions/one" in (found.grave[0].seen or "")
    assert secret not in str(report)
