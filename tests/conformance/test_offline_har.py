"""The same traffic as a HAR file: what a recording tells, a HAR file tells, but for who ended what and when."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from conformance.faults.aap import FAULTS
from conformance.kit.suite import dialects, load_suite
from conformance.kit.verdict import Outcome, Report
from conformance.offline.har import read_har
from conformance.offline.judging import judge, mounted
from tests.support.conformance.examinations import KEY, judged

START = datetime(2026, 1, 1, tzinfo=UTC)
RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]
NEEDS_TIMES = {
    "aap": {"AAP-TURN-04"},
    "cas": {"CAS-EV-04", "CAS-EV-05", "CAS-SESS-03", "CAS-SESS-13", "CAS-SSE-06"},
    "zenflux": {"ZF-WS-24"},
    "blade": set(),
}
"""What takes the time of each event of a stream, which a HAR file does not have."""


def as_har(path: Path) -> dict[str, Any]:
    """The recording as a browser would have saved it."""
    entries: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().splitlines()[1:-1]:
        told = orjson.loads(line)
        if told["type"] == "request":
            entries[told["exchange"]] = _begun(told)
        else:
            _followed(entries[told["exchange"]], told)
    return {"log": {"version": "1.2", "entries": list(entries.values())}}


def _begun(told: dict[str, Any]) -> dict[str, Any]:
    query = f"?{told['query']}" if told.get("query") else ""
    request = {"method": told["method"], "url": f"http://h{told['path']}{query}", "headers": _headers(told)}
    started = (START + timedelta(seconds=told["at"])).isoformat()
    response = {"status": 0, "headers": [], "content": {}}
    return {"startedDateTime": started, "time": 0, "request": request, "response": response, "_at": told["at"]}


def _headers(told: dict[str, Any]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in told["headers"]]


def _followed(entry: dict[str, Any], told: dict[str, Any]) -> None:
    response = entry["response"]
    match told["type"]:
        case "request.body":
            encoding = {"encoding": "base64"} if "base64" in told else {}
            entry["request"]["postData"] = {"text": told.get("text", told.get("base64")), **encoding}
        case "response":
            response |= {"status": told["status"], "headers": _headers(told)}
            entry["_answered"] = told["at"]
        case "body" | "event":
            content = response["content"]
            content["text"] = content.get("text", "") + told.get("text", told.get("base64", ""))
            content |= {"encoding": "base64"} if "base64" in told else {}
        case "frame":
            kind = "send" if told["from"] == "client" else "receive"
            frame = {"type": kind, "time": START.timestamp() + told["at"], "opcode": 1 if "text" in told else 2}
            data = told.get("text", told.get("base64"))
            entry.setdefault("_webSocketMessages", []).append(frame | {"data": data})
        case "end":
            entry["time"] = (told["at"] - entry["_at"]) * 1000
            entry["timings"] = {"receive": (told["at"] - entry.get("_answered", told["at"])) * 1000}
            entry |= {"_error": "net::ERR_ABORTED"} if told["ending"] == "left" else {}


def outcomes(report: Report) -> dict[str, Outcome]:
    return {item.requirement.id: item.outcome for item in report.findings}


@pytest.mark.parametrize("dialect", dialects())
async def test_a_har_file_gives_the_same_verdicts(
    recorded: Callable[[str], Awaitable[Any]], tmp_path: Path, dialect: str
) -> None:
    whole = await recorded(dialect)
    saved = tmp_path / "saved.har"
    saved.write_bytes(orjson.dumps(as_har(whole.path)))
    ours, theirs = outcomes(whole.offline), outcomes(judged(dialect, saved))
    differing = {name: (outcome, theirs[name]) for name, outcome in ours.items() if theirs[name] is not outcome}
    assert set(differing) <= NEEDS_TIMES[dialect]
    assert set(differing.values()) <= {(Outcome.PASSED, Outcome.NOT_TESTABLE)}


async def test_a_wrong_server_is_caught_in_a_har_file(record_run: RecordRun) -> None:
    fault = FAULTS["two-stops"]
    path, _ = await record_run("aap", fault.server(key=KEY), *fault.requirements)
    suite = load_suite("aap")
    tape = mounted(read_har(path, as_har(path)), "aap")
    found = outcomes(judge(suite, tape, suite.catalogue.requirements))
    assert {found[name] for name in fault.requirements} == {Outcome.FAILED}
