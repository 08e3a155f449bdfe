"""The report as JSON, for programs; report.schema.json beside this file says what is in it."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from conformance.kit.documents import DocumentError
from conformance.kit.reproduction_steps import steps
from conformance.kit.verdict import CaseResult, Cause, Finding, Report, Standing

NAME = "dragoman-conformance-report"
VERSION = 1
SCHEMA_FILE = Path(__file__).parent / "report.schema.json"


def text(report: Report) -> str:
    """The whole report; transcripts of passed cases are left out."""
    return orjson.dumps(body(report), option=orjson.OPT_INDENT_2).decode() + "\n"


def read(path: Path) -> dict[str, Any]:
    """Read the body of a JSON report; DocumentError says why the file is no report."""
    try:
        found = orjson.loads(path.read_bytes())
    except OSError as error:
        raise DocumentError(path, [f"cannot be read: {error.strerror}"]) from None
    except orjson.JSONDecodeError as error:
        raise DocumentError(path, [f"is no report: it is not JSON: {error}"]) from None
    if not isinstance(found, dict) or found.get("schema") != NAME:
        raise DocumentError(path, [f'is no report: `--report json` begins with "schema": "{NAME}"'])
    if found.get("version") != VERSION:
        raise DocumentError(path, [f"is a report of version {found.get('version')!r}; only {VERSION} can be read"])
    validator = jsonschema_rs.Draft202012Validator(orjson.loads(SCHEMA_FILE.read_bytes()))
    problem = next(validator.iter_errors(found), None)
    if problem is not None:
        place = "/".join(map(str, problem.instance_path)) or "the report"
        raise DocumentError(path, [f"is no sound report: {place}: {problem.message}"])
    return found


def body(report: Report) -> dict[str, Any]:
    """The body that the schema describes; within a version, members are only added."""
    return {
        "schema": NAME,
        "version": VERSION,
        "dialect": report.dialect,
        "title": report.title,
        "url": report.url,
        "requirementSet": report.requirements,
        "started": report.started.isoformat(),
        "seconds": round(report.seconds, 3),
        "verdict": report.verdict.value,
        "exitCode": report.exit_code,
        "baseline": _baseline(report.standing),
        "leftBehind": list(report.left),
        "explained": report.explained,
        "causes": [_cause(item) for item in report.causes],
        "levels": report.by_level(),
        "sections": report.by_section(),
        "requirements": [_requirement(item) for item in report.findings],
        "cases": [_case(result, report.url) for result in report.results],
    }


def _baseline(standing: Standing | None) -> dict[str, Any] | None:
    return None if standing is None else {"known": dict(standing.known), "complaints": list(standing.complaints)}


def _cause(cause: Cause) -> dict[str, Any]:
    requirement = cause.finding.requirement
    return {
        "id": requirement.id,
        "level": requirement.level.value,
        "sentence": requirement.sentence,
        "asked": cause.is_asked,
        "remarks": [result.remark for result in cause.finding.grave],
        "blocked": [finding.requirement.id for finding in cause.blocked],
    }


def _requirement(finding: Finding) -> dict[str, Any]:
    return {
        **finding.requirement.model_dump(mode="json"),
        "origin": finding.requirement.origin.value,
        "outcome": finding.outcome.value,
        "notOffered": finding.not_offered,
        "because": list(finding.because),
        "readings": list(finding.readings),
        "cases": [result.name for result in finding.results],
        "remarks": [result.remark for result in finding.grave],
    }


def _case(result: CaseResult, url: str) -> dict[str, Any]:
    told = {
        "name": result.name,
        "sentence": result.sentence,
        "requirements": list(result.requirements),
        "outcome": result.outcome.value,
        "seconds": round(result.seconds, 3),
        "expected": result.expected,
        "seen": result.seen,
        "reason": result.reason,
        "because": result.because,
        "departures": [vars(item) for item in result.departures],
    }
    if result.is_clean:
        return told
    return told | {"transcript": result.transcript.split("\n"), "reproduce": steps(result.transcript, url)}
