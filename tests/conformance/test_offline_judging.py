"""Recordings of whole examinations: of right servers nothing fails, of wrong ones the named requirement does."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.faults import aap as aap_faults
from conformance.faults import cas as cas_faults
from conformance.faults.blade import every as blade_faults
from conformance.faults.reference import ReferenceServer
from conformance.faults.zenflux import catalogue as zenflux_faults
from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict
from conformance.offline.judging import load_offline, mounted
from conformance.offline.reading import read
from conformance.offline.rule import disagreements
from conformance.offline.tape import Unusable
from tests.support.conformance.examinations import KEY, judged, made, stumbles

RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]
PASSED_AT_LEAST = {"aap": 40, "cas": 62, "zenflux": 194, "blade": 153}
FAULTS = {
    "aap": aap_faults.FAULTS,
    "cas": cas_faults.FAULTS,
    "zenflux": zenflux_faults.FAULTS,
    "blade": blade_faults.FAULTS,
}
CAUGHT = {
    "aap": "version-as-text option-without-default capabilities-as-booleans tool-without-parameters created-with-200 "
    "runs-on-creation secret-shown secret-listed deleted-with-200 every-tool-enabled seed-forgotten pages-overlap "
    "both-histories-at-once trimmed-messages results-forgotten open-calls-hidden empty-turns-taken options-replaced "
    "no-start two-stops words-after-the-stop start-for-every-message stream-as-text deltas-and-wholes parts-in-pieces "
    "input-as-text other-call-ids result-before-call client-results-echoed invented-reason none-drops-thinking "
    "delta-drops-blanks cut-on-failure permission-never-asked granted-not-run trust-ignored reasoning-blocks "
    "refusal-in-plain-text refusal-as-object",
    "cas": "bare-errors one-error-type no-request-id times-without-zone cursors-mix repetitions-executed "
    "turn-status-missing null-for-empty update-says-ok oldest-first live-agents semicolons-only paths-as-given "
    "token-returned no-schema-version answers-reversed accepted-is-200 strings-kept descending-by-default "
    "idle-of-no-turn one-turn-for-all starts-untold speaks-unasked spans-left-open spans-end-others reason-as-text "
    "thoughts-as-text results-of-nothing stream-error frames-without-id frames-without-event data-in-two-lines "
    "repeated-before-live closed-after-turns trimmed-deltas deltas-stored whole-before-pieces forms-mixed "
    "coordinator-with-parent thread-unnamed ends-swapped models-unnamed",
    "zenflux": "binary-frames unknown-frames answered-twice any-method-chats user-not-needed error-as-text "
    "no-frame-numbers ticks-in-seconds no-envelope data-as-null ids-twice numbered-from-zero words-after-messages "
    "other-conversation stale-message-ids times-go-back no-session-start no-conversation-start indexes-from-one "
    "indexes-with-gaps usage-too-late results-last words-after-the-end notes-in-blocks overlapping-blocks "
    "no-message-stop start-without-user end-without-duration flat-error no-done words-after-done role-of-an-agent "
    "stop-with-usage not-mirrored closes-the-first text-at-once call-without-input result-of-another typed-deltas "
    "stray-deltas input-in-python stream-as-text code-is-zero errors-with-data",
    "blade": "turn-without-window session-without-user idle-status updated-before-created history-without-text "
    "one-entry-for-all counting-from-one root-is-main invented-kind role-human never-streaming null-for-empty "
    "usage-by-other-names markdown-blocks text-as-object tool-use-as-text loud-history call-without-name "
    "patch-without-session patch-in-other-loop invented-patch content-without-delta deltas-repeat content-is-the-delta "
    "result-of-no-call two-starts turns-start-twice patches-after-the-end first-delta-lost results-twice "
    "end-without-calls history-backwards parent-changes headless-is-silent output-as-text question-completes-the-turn "
    "several-for-one everybody-hears result-without-headless planning-is-doing patches-uncounted created-by-id "
    "errors-by-another-name plaintext-twice key-without-time",
}
WRONG = [(dialect, name) for dialect, names in CAUGHT.items() for name in names.split()]
PATIENCE = {"aap": 5.0, "cas": 1.0, "zenflux": 0.8, "blade": 2.0}


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
async def test_a_wrong_server_is_caught(record_run: RecordRun, dialect: str, name: str) -> None:
    fault = FAULTS[dialect][name]
    server, within = made(dialect, fault.server), PATIENCE[dialect]
    path, _ = await record_run(dialect, server, *fault.requirements, within=within, clears=False)
    report = judged(dialect, path)
    failed = {item.requirement.id: item for item in report.of(Outcome.FAILED)}
    assert set(fault.requirements) <= set(failed)
    for item in failed.values():
        for result in item.grave:
            assert result.outcome is not Outcome.FAILED or (result.expected and "(at line " in (result.seen or ""))
    assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []


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
