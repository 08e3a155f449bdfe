"""The report as JSON, for programs."""

from typing import Any

import orjson

from conformance.kit.verdict import CaseResult, Finding, Report


def text(report: Report) -> str:
    """The whole report; transcripts of passed cases are left out."""
    return orjson.dumps(body(report), option=orjson.OPT_INDENT_2).decode() + "\n"


def body(report: Report) -> dict[str, Any]:
    return {
        "dialect": report.dialect,
        "title": report.title,
        "url": report.url,
        "started": report.started.isoformat(),
        "seconds": round(report.seconds, 3),
        "verdict": report.verdict.value,
        "exitCode": report.exit_code,
        "levels": _plain(report.by_level()),
        "sections": _plain(report.by_section()),
        "requirements": [_requirement(item) for item in report.findings],
        "cases": [_case(result) for result in report.results],
    }


def _plain(counts: dict[str, Any]) -> dict[str, dict[str, int]]:
    return {name: {outcome.value: number for outcome, number in row.items()} for name, row in counts.items()}


def _requirement(finding: Finding) -> dict[str, Any]:
    return {
        **finding.requirement.model_dump(mode="json"),
        "outcome": finding.outcome.value,
        "cases": [result.name for result in finding.results],
        "remarks": [result.remark for result in finding.grave],
    }


def _case(result: CaseResult) -> dict[str, Any]:
    told = {
        "name": result.name,
        "sentence": result.sentence,
        "requirements": list(result.requirements),
        "outcome": result.outcome.value,
        "seconds": round(result.seconds, 3),
        "expected": result.expected,
        "seen": result.seen,
        "reason": result.reason,
    }
    return told if result.outcome == "passed" else told | {"transcript": result.transcript.split("\n")}
