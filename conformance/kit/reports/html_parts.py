"""The parts of the HTML report: bars, tables, and one article per failure."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from conformance.kit.reproduction_steps import steps
from conformance.kit.requirement import Origin, Requirement
from conformance.kit.verdict import COUNTS, CaseResult, Cause, Finding, Outcome, Report

HEAD, TAIL = 160, 80
EXEMPT = (Outcome.NOT_APPLICABLE, Outcome.NOT_OFFERED)
"""The outcomes of requirements that do not apply to the server."""
ORIGINS = {Origin.DOCUMENTATION: "published documentation", Origin.OURS: "what we hold to be right"}
SIGNS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.NOT_TESTABLE: "?"} | dict.fromkeys(EXEMPT, "–")


def left_behind(report: Report, shown: int = 5) -> str:
    """One line about resources that are left on the server."""
    listed = ", ".join(report.left[:shown])
    more = f" and {len(report.left) - shown} more" if len(report.left) > shown else ""
    return f"could not be deleted, and is still on the server: {len(report.left)} ({listed}{more})"


def unoffered(report: Report) -> dict[str, list[str]]:
    """Why parts of the protocol are not offered, and the requirements that belong to them."""
    found: dict[str, list[str]] = {}
    for finding in report.of(Outcome.NOT_OFFERED):
        found.setdefault(finding.not_offered or "", []).append(finding.requirement.id)
    return found


def share(name: str, outcomes: Sequence[str]) -> str:
    """The passed share of a level, in numbers and as a bar."""
    asked = [outcome for outcome in outcomes if outcome not in EXEMPT]
    return (
        f'<div class="share"><span class="name">{name.upper()}</span>'
        f'<span class="figure"><b>{asked.count(Outcome.PASSED)}</b> of {len(asked)} passed</span>{_bar(asked)}</div>'
    )


def _bar(outcomes: Sequence[str]) -> str:
    numbers = {outcome: outcomes.count(outcome) for outcome in COUNTS}
    told = ", ".join(f"{number} {outcome}" for outcome, number in numbers.items() if number)
    pieces = "".join(
        f'<i class="{_class(outcome)}" style="flex-grow:{number}"></i>' for outcome, number in numbers.items() if number
    )
    return f'<span class="bar" role="img" aria-label="{told}">{pieces}</span>'


def cause_list(report: Report) -> str:
    """What explains the findings, in a few lines, each a link to its failure."""
    if not report.causes:
        return ""
    rows = "".join(_cause_row(cause) for cause in report.causes)
    return f'<section class="causes"><h2>{report.explained}</h2><ol>{rows}</ol></section>'


def _cause_row(cause: Cause) -> str:
    requirement = cause.finding.requirement
    blocks = f' <span class="soft">blocks {len(cause.blocked)}</span>' if cause.blocked else ""
    aside = "" if cause.is_asked else ' <span class="soft">not asked for</span>'
    return (
        f'<li {_findable(cause.finding)}><a href="#{requirement.id}">{requirement.id}</a> {_chip(requirement)} '
        f"{escape(requirement.sentence)}{blocks}{aside}</li>"
    )


def _findable(finding: Finding) -> str:
    """Words that the filter finds beside those that are shown."""
    requirement = finding.requirement
    words = f"{requirement.id} {requirement.level} {finding.count} {requirement.section} {requirement.origin}"
    return f'data-find="{escape(words)}"'


def overview(report: Report) -> str:
    """Every section at a glance, each a link to its requirements."""
    cards = []
    for name in report.by_section():
        outcomes = [item.count for item in report.findings if item.requirement.section == name]
        asked = [outcome for outcome in outcomes if outcome not in EXEMPT]
        figure = f"{asked.count(Outcome.PASSED)} of {len(asked)}" if asked else outcomes[0]
        cards.append(
            f'<a href="#section-{_slug(name)}"><span>{escape(name)}</span> <span class="soft">{figure}</span>'
            f"{_bar(outcomes)}</a>"
        )
    return f'<nav class="overview" aria-label="Sections">{"".join(cards)}</nav>'


def _slug(name: str) -> str:
    return "-".join(re.findall(r"[\w.]+", name.lower()))


def counts(what: str, rows: dict[str, dict[str, int]]) -> str:
    """A table of how many of each outcome; zeros are faint."""
    head = "".join(f"<th>{outcome}</th>" for outcome in COUNTS)
    body = "".join(f"<tr><th>{escape(name)}</th>{_numbers(row)}</tr>" for name, row in rows.items())
    return f'<table class="counts"><thead><tr><th>{what}</th>{head}</tr></thead><tbody>{body}</tbody></table>'


def _numbers(row: dict[str, int]) -> str:
    return "".join(f'<td class="{_class(it) if row[it] else "none"}">{row[it]}</td>' for it in COUNTS)


def article(cause: Cause, report: Report, shown: set[str]) -> str:
    """One requirement that failed: its sentence, its origin, every case that failed it, and what it blocks."""
    finding, requirement = cause.finding, cause.finding.requirement
    reason = report.standing.known.get(requirement.id) if report.standing else None
    known = f'<p class="known">Known: {escape(reason)}</p>' if reason else ""
    failed = (result for result in finding.grave if result.outcome is Outcome.FAILED)
    return (
        f'<article id="{requirement.id}" {_findable(finding)}><header><h3>{requirement.id}</h3>{_chip(requirement)}'
        f'<span class="soft">{escape(requirement.section)}</span></header>'
        f'<p class="sentence">{escape(requirement.sentence)}</p>{_origin(requirement)}{known}{_blocks(cause)}'
        f"{''.join(_case(result, report.url, shown) for result in failed)}</article>"
    )


def _blocks(cause: Cause) -> str:
    links = ", ".join(f'<a href="#{it.requirement.id}">{it.requirement.id}</a>' for it in cause.blocked)
    return f'<p class="blocks">Not testable because of it: {links}</p>' if links else ""


def _chip(requirement: Requirement) -> str:
    return f'<span class="chip {requirement.level}">{requirement.level.upper()}</span>'


def _origin(requirement: Requirement) -> str:
    """The protocol's own words with their translation, or where the sentence comes from if it has none."""
    if requirement.seed is None:
        rests = escape(requirement.source) + (f" ({escape(requirement.english)})" if requirement.english else "")
        silent = "The protocol's own document is silent here."
        return f'<p class="soft">{silent} Rests on {ORIGINS[requirement.origin]}: {rests}</p>'
    if requirement.english is None:
        return f"<blockquote>{escape(requirement.seed)}</blockquote>"
    original = f'<h4>Chinese original</h4><blockquote lang="zh">{escape(requirement.seed)}</blockquote>'
    translation = f"<h4>English</h4><blockquote>{escape(requirement.english)}</blockquote>"
    return f'<div class="quotes"><div>{original}</div><div>{translation}</div></div>'


def _case(result: CaseResult, url: str, shown: set[str]) -> str:
    told = (
        f'<div class="case"><p class="checks"><code>{escape(result.name)}</code> {escape(result.sentence)}</p>'
        f'<div class="sides"><div class="expected"><h4>expected</h4><pre>{escape(result.expected or "")}</pre></div>'
        f'<div class="seen"><h4>seen</h4><pre>{escape(result.seen or "")}</pre></div></div>'
    )
    if result.name in shown:
        return f'{told}<p class="soft"><a href="#case-{result.name}">The same case as above.</a></p></div>'
    shown.add(result.name)
    return f'{told.replace("<div", f"<div id=case-{result.name}", 1)}{_folded(result, url)}</div>'


def _folded(result: CaseResult, url: str) -> str:
    """The long parts, folded: how to reproduce the failure, and the traffic."""
    commands = steps(result.transcript, url)
    listed = "".join(f'<span class="step">{escape(command)}\n</span>' for command in commands)
    kind = "curl" if commands and all("curl" in command for command in commands) else "curl and websocat"
    reproduce = f'<details><summary>Reproduce with {kind}</summary><pre class="steps">{listed}</pre></details>'
    wire = f"<details><summary>Wire transcript</summary><pre>{_wire(result.transcript)}</pre></details>"
    return (reproduce if commands else "") + (wire if result.transcript else "")


def _wire(transcript: str) -> str:
    """The traffic, each line marked with its direction; the middle of a very long one is left out."""
    lines = transcript.split("\n")
    left_out = len(lines) - HEAD - TAIL
    if left_out > 0:
        lines = [*lines[:HEAD], f"          … {left_out} lines; --transcripts keeps them all", *lines[-TAIL:]]
    return "".join(f'<span class="{_direction(line)}">{escape(line)}\n</span>' for line in lines)


def _direction(line: str) -> str:
    return {">": "out", "<": "in"}.get(line[10:11], "aside")


def gathered(findings: Iterable[Finding]) -> str:
    """Requirements with the same reason, listed together."""
    reasons: dict[str, list[Finding]] = {}
    for finding in findings:
        told = [result.reason or "" for result in finding.grave if result.reason]
        exempt = finding.requirement.not_applicable or finding.not_offered
        reason = exempt or "; ".join(dict.fromkeys(told)) or "no case could be put"
        reasons.setdefault(reason, []).append(finding)
    return "".join(_group(reason, listed) for reason, listed in reasons.items())


def _group(reason: str, listed: list[Finding]) -> str:
    items = "".join(
        f'<li id="{it.requirement.id}" {_findable(it)}><b>{it.requirement.id}</b> {_chip(it.requirement)} '
        f"{escape(it.requirement.sentence)}</li>"
        for it in listed
    )
    return f'<div class="group"><p>{escape(reason)}</p><ul>{items}</ul></div>'


def folded_section(name: str, report: Report) -> str:
    """All requirements of a section, folded under their count."""
    found = [finding for finding in report.findings if finding.requirement.section == name]
    rows = "".join(map(_row, found))
    bar = _bar([finding.count for finding in found])
    heading = f'<span class="name">{escape(name)}</span> <span class="soft">{len(found)}</span>{bar}'
    place = f'class="section" id="section-{_slug(name)}"'
    return f'<details {place}><summary>{heading}</summary><table class="all">{rows}</table></details>'


def _row(finding: Finding) -> str:
    requirement, outcome = finding.requirement, finding.outcome
    name = requirement.id if outcome is Outcome.PASSED else f'<a href="#{requirement.id}">{requirement.id}</a>'
    sign = f'<span aria-hidden="true">{SIGNS[outcome]}</span> {finding.count}'
    words = f"<details><summary>{requirement.origin}</summary>{_origin(requirement)}</details>"
    return (
        f'<tr {_findable(finding)}><td class="{_class(finding.count)}">{sign}</td>'
        f"<td>{name}</td><td>{_chip(requirement)}</td>"
        f"<td>{escape(requirement.sentence)}{_readings(finding)}{words}</td></tr>"
    )


def _readings(finding: Finding) -> str:
    """Which readings of the sentence the server keeps, where it allows several."""
    told = escape("; ".join(finding.readings))
    return f'<p class="soft">The sentence allows several readings; this server: {told}.</p>' if told else ""


def _class(outcome: str) -> str:
    return outcome.replace(" ", "-")
