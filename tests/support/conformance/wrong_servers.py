"""Servers with one fault each, before the cases that must notice it, and their recordings before the rules."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.faults.fault import Fault
from conformance.faults.kill.setups import setup_of
from conformance.kit.verdict import Outcome, Report
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.conformance.examinations import examine_server, judged, made, record_server, stumbles

FAULTS: Mapping[str, Mapping[str, Fault]] = {name: setup_of(name).faults for name in EXAMINED}


SAMPLED = 3
"""`make test` examines one fault in so many: the proof `faults` examines each, by all cases of its requirements."""


def recorded(dialect: str) -> list[str]:
    """The faults that are examined through the recording proxy, so that their recordings are judged too."""
    return examination_facts(dialect).recorded.split()


def unrecorded(dialect: str) -> list[str]:
    """The faults that are examined without a recording."""
    return [name for name in FAULTS[dialect] if name not in recorded(dialect)]


def sampled(faults: list[str]) -> list[str]:
    """Those that `make test` examines."""
    return faults[::SAMPLED]


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
    cases, within = () if by_all else fault.cases, examination_facts(dialect).patience
    how: dict[str, Any] = {"within": within, "clears": by_all, "cases": cases}
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
    assert {result.name for result in report.results if result.failed} >= set(fault.cases)
    failed = [result for result in report.results if result.outcome is Outcome.FAILED]
    assert all(result.expected and result.seen for result in failed)
    assert stumbles(report) == []


def _assert_shown(fault: Fault, report: Report) -> None:
    failed = {item.requirement.id: item for item in report.of(Outcome.FAILED)}
    assert set(fault.requirements) <= set(failed)
    for result in [result for item in failed.values() for result in item.grave]:
        assert result.outcome is not Outcome.FAILED or (result.expected and "(at line " in (result.seen or ""))
    assert stumbles(report) == []
