"""The correct server of every dialect passes entirely, live, in its recording and in a HAR file, and finds itself as it
was before the examination. There is one examination of each for all tests."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import orjson
import pytest

from conformance.faults.local_server import served
from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Outcome, Report, Verdict
from tests.support.conformance.examination_facts import examination_facts
from tests.support.conformance.examinations import (
    KEY,
    PATIENT,
    SERVERS,
    judged,
    record_at,
    stumbles,
    suited,
    troubles,
)
from tests.support.conformance.foreign_resources import Lists, OtherUser, held
from tests.support.conformance.har_files import as_har
from tests.support.dialect_parts import each


@dataclass(frozen=True)
class Whole:
    """A whole examination of a right server: its recording, both verdicts, and the server before and after it."""

    path: Path
    live: Report
    offline: Report
    lists: tuple[Lists, Lists]
    held: tuple[dict[str, list[str]], dict[str, list[str]]]


Recorded = Callable[[str], Awaitable[Whole]]


def outcomes(report: Report) -> dict[str, Outcome]:
    return {item.requirement.id: item.outcome for item in report.findings}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The whole examination of a right server, recorded by the first who asks for it."""
    home, kept = tmp_path_factory.mktemp("recorded"), dict[str, Whole]()

    async def run(dialect: str) -> Whole:
        if dialect not in kept:
            kept[dialect] = await _whole(dialect, home / f"{dialect}.jsonl")
        return kept[dialect]

    return run


async def _whole(dialect: str, path: Path) -> Whole:
    server = SERVERS[dialect]()
    profile = suited(dialect, server)
    async with served(server) as url, aiohttp.ClientSession() as session:
        somebody = OtherUser(dialect, url, session)
        await somebody.make()
        lists, things = await somebody.lists(), held(server)
        with path.open("wb") as file:
            live = await record_at(dialect, url, file, profile, within=PATIENT)
        after = await somebody.lists()
    return Whole(path, live, judged(dialect, path), (lists, after), (things, held(server)))


@pytest.mark.parametrize("dialect", each("examination", of=dialects()))
async def test_the_reference_server_conforms(recorded: Recorded, dialect: str) -> None:
    live = (await recorded(dialect)).live
    assert troubles(live) == []
    assert (live.verdict, live.exit_code) == (Verdict.CONFORMS, 0)
    assert len(live.results) == len(load_suite(dialect).cases)


@pytest.mark.parametrize("dialect", each("examination", of=dialects()))
async def test_a_server_is_left_as_it_was_found(recorded: Recorded, dialect: str) -> None:
    whole = await recorded(dialect)
    before, after = whole.lists
    assert after == before
    assert "heirs" in str(before) or "Not yours" in str(before) or "sessionId" in str(before)
    before, after = whole.held
    assert after == before
    assert any(before.values())


@pytest.mark.parametrize("dialect", each("examination", of=dialects()))
async def test_its_recording_fails_nothing(recorded: Recorded, dialect: str) -> None:
    whole = await recorded(dialect)
    report = whole.offline
    assert [(item.requirement.id, item.grave[0].remark) for item in report.of(Outcome.FAILED)] == []
    assert stumbles(report) == []
    assert len(report.of(Outcome.PASSED)) >= examination_facts(dialect).passed_offline
    assert all(result.reason for item in report.of(Outcome.NOT_TESTABLE) for result in item.grave)
    assert KEY not in whole.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("dialect", each("examination", of=dialects()))
async def test_a_har_file_gives_the_same_verdicts(recorded: Recorded, tmp_path: Path, dialect: str) -> None:
    whole = await recorded(dialect)
    saved = tmp_path / "saved.har"
    saved.write_bytes(orjson.dumps(as_har(whole.path)))
    ours, theirs = outcomes(whole.offline), outcomes(judged(dialect, saved))
    differing = {name: (outcome, theirs[name]) for name, outcome in ours.items() if theirs[name] is not outcome}
    assert set(differing) <= set(examination_facts(dialect).needs_times)
    assert set(differing.values()) <= {(Outcome.PASSED, Outcome.NOT_TESTABLE)}
