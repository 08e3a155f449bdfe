"""Servers with one fault each, before the cases that must notice it, and their recordings before the rules."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.faults.fault import HOME, Fault, load_faults
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.examinations import examine_server, judged, made, record_server, stumbles

FAULTS: Mapping[str, Mapping[str, Fault]] = {
    path.parent.name: load_faults(path.parent.name) for path in sorted(HOME.glob("*/faults.yaml"))
}
RECORDED = {
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
"""Faults that are examined through the recording proxy, so that their recordings are judged too."""
PATIENCE = {"aap": 5.0, "cas": 1.0, "zenflux": 0.8, "blade": 2.0}


def unrecorded(dialect: str) -> list[str]:
    """The faults that are examined without a recording."""
    return [name for name in FAULTS[dialect] if name not in RECORDED[dialect].split()]


async def assert_caught(dialect: str, name: str, recording: Path | None = None, *, by_all: bool = False) -> None:
    """The cases that the fault names, or all of its requirements, fail and say why; so does the recording, if any.

    Every change of the fault has made a difference, and the server is wrong without breaking down: a handler that
    raises would make every case fail, whatever the fault.
    """
    fault = FAULTS[dialect][name]
    with broken_handlers() as broken:
        await _assert_caught(fault, dialect, recording, by_all=by_all)
    assert broken == []


async def _assert_caught(fault: Fault, dialect: str, recording: Path | None, *, by_all: bool) -> None:
    fault.tally.clear()
    server, wanted = made(dialect, fault.server), fault.requirements
    how: dict[str, Any] = {"within": PATIENCE[dialect], "clears": by_all, "cases": () if by_all else fault.cases}
    if recording is None:
        _assert_failed(fault, await examine_server(dialect, server, *wanted, **how))
    else:
        _assert_failed(fault, await record_server(dialect, server, recording, *wanted, **how))
        _assert_shown(fault, judged(dialect, recording))
    assert fault.unapplied == []


@contextmanager
def broken_handlers() -> Iterator[list[str]]:
    """What handlers of servers have raised, in words."""
    raised: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.msg.startswith("Error handling request"):
                raised.append(repr(record.exc_info[1]))

    log, listener = logging.getLogger("aiohttp.server"), Listener()
    log.addHandler(listener)
    try:
        yield raised
    finally:
        log.removeHandler(listener)


def _assert_failed(fault: Fault, report: Report) -> None:
    assert {item.requirement.id for item in report.of(Outcome.FAILED)} == set(fault.requirements)
    failed = [result for result in report.results if result.outcome is Outcome.FAILED]
    assert {result.name for result in failed} >= set(fault.cases)
    assert all(result.expected and result.seen for result in failed)
    assert stumbles(report) == []


def _assert_shown(fault: Fault, report: Report) -> None:
    failed = {item.requirement.id: item for item in report.of(Outcome.FAILED)}
    assert set(fault.requirements) <= set(failed)
    for result in [result for item in failed.values() for result in item.grave]:
        assert result.outcome is not Outcome.FAILED or (result.expected and "(at line " in (result.seen or ""))
    assert stumbles(report) == []
