"""The report as one HTML file that needs nothing from anywhere."""

from html import escape
from pathlib import Path
from string import Template

from conformance.kit.requirement import Requirement
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report

PAGE = Path(__file__).parent / "page.html"


def text(report: Report) -> str:
    """The whole page."""
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        title=escape(report.title),
        verdict=report.verdict.value,
        url=escape(report.url),
        started=report.started.strftime("%Y-%m-%d %H:%M UTC"),
        cases=len(report.results),
        seconds=f"{report.seconds:.1f}",
        levels=_counts("level", report.by_level()),
        sections=_counts("section", report.by_section()),
        failures=_articles("Failures", report.of(Outcome.FAILED)),
        untested=_articles("Not testable", report.of(Outcome.NOT_TESTABLE))
        + _articles("Not applicable", report.of(Outcome.NOT_APPLICABLE)),
        requirements="\n".join(_row(finding) for finding in report.findings),
    )


def _counts(what: str, rows: dict[str, dict[Outcome, int]]) -> str:
    head = "".join(f'<th class="{_class(outcome)}">{outcome}</th>' for outcome in Outcome)
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(f'<td class=number>{row[outcome]}</td>' for outcome in Outcome)}</tr>"
        for name, row in rows.items()
    )
    return f"<table><tr><th>{what}</th>{head}</tr>{body}</table>"


def _articles(title: str, findings: tuple[Finding, ...]) -> str:
    return f"<h2>{title}</h2>" + "\n".join(map(_article, findings)) if findings else ""


def _article(finding: Finding) -> str:
    requirement = finding.requirement
    return (
        f'<article id="{requirement.id}"><h3><span class="{_class(finding.outcome)}">{finding.outcome}</span> '
        f"{requirement.id} ({requirement.level})</h3><p>{escape(requirement.sentence)}</p>"
        f"<p><code>{escape(requirement.source)}</code></p>{_exemption(requirement)}"
        f"{''.join(map(_grave, finding.grave))}</article>"
    )


def _exemption(requirement: Requirement) -> str:
    return f"<p>{escape(requirement.not_applicable)}</p>" if requirement.not_applicable else ""


def _grave(result: CaseResult) -> str:
    terms = {"case": result.name, "checks": result.sentence}
    terms |= {"expected": result.expected or "", "seen": result.seen or ""} if result.expected else {}
    terms |= {"reason": result.reason} if result.reason else {}
    listed = "".join(f"<dt>{name}</dt><dd>{escape(told)}</dd>" for name, told in terms.items())
    folded = f"<details><summary>Wire transcript</summary><pre>{escape(result.transcript)}</pre></details>"
    return f"<dl>{listed}</dl>{folded if result.transcript else ''}"


def _row(finding: Finding) -> str:
    requirement = finding.requirement
    name = requirement.id if finding.outcome is Outcome.PASSED else f'<a href="#{requirement.id}">{requirement.id}</a>'
    return (
        f"<tr><td>{name}</td><td>{requirement.level}</td>"
        f'<td class="{_class(finding.outcome)}">{finding.outcome}</td><td>{escape(requirement.sentence)}</td></tr>'
    )


def _class(outcome: Outcome) -> str:
    return outcome.value.replace(" ", "-")
