"""Wrong servers and their recordings: in both, the named requirements fail. Right ones: the proof `reference`.

A third of them; all: `make prove ARGS="--only faults"`.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import orjson
import pytest

from conformance.faults.aap.server import AapServer
from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.offline.har import read_har
from conformance.offline.judge import judge, load_offline, mounted
from conformance.offline.recording import Unusable
from conformance.offline.recording_file import read
from conformance.offline.rule import disagreements
from tests.support.conformance.examinations import KEY, judged
from tests.support.conformance.har_files import as_har
from tests.support.conformance.wrong_servers import FAULTS, assert_caught, recorded, sampled

RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]
WRONG = [(dialect, name) for dialect in FAULTS for name in sampled(recorded(dialect))]


@pytest.mark.parametrize("dialect", dialects())
def test_every_requirement_has_a_rule_or_a_reason(dialect: str) -> None:
    assert disagreements(load_suite(dialect).catalogue, load_offline(dialect)) == []


@pytest.mark.parametrize(("dialect", "name"), WRONG, ids=[f"{dialect}-{name}" for dialect, name in WRONG])
async def test_a_wrong_server_is_caught(tmp_path: Path, dialect: str, name: str) -> None:
    await assert_caught(dialect, name, tmp_path / "recording.jsonl")


async def test_a_wrong_server_is_caught_in_a_har_file(record_run: RecordRun) -> None:
    fault, suite = FAULTS["aap"]["two-stops"], load_suite("aap")
    path, _ = await record_run("aap", fault.server(key=KEY), *fault.requirements)
    recording = mounted(read_har(path, as_har(path)), "aap")
    found = judge(suite, recording, suite.catalogue.requirements)
    assert {item.requirement.id for item in found.of(Outcome.FAILED)} >= set(fault.requirements)


async def test_what_was_not_seen_is_not_testable(record_run: RecordRun) -> None:
    path, _ = await record_run("aap", AapServer(key=KEY), "AAP-META-01")
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
    path, _ = await record_run("aap", AapServer(key=KEY), "AAP-SESS-01")
    (found,) = [item for item in judged("aap", path).findings if item.requirement.id == "AAP-SESS-10"]
    assert {result.outcome for result in found.results} == {Outcome.PASSED, Outcome.NOT_TESTABLE}
    assert found.outcome is Outcome.NOT_TESTABLE


async def test_a_recording_of_another_dialect_is_refused(record_run: RecordRun) -> None:
    path, _ = await record_run("aap", AapServer(key=KEY), "AAP-META-01")
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
