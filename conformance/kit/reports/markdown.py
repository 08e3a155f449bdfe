"""The report as Markdown, for a pull request or an issue."""

from conformance.kit.reports.html_parts import unoffered
from conformance.kit.reproduction_steps import steps
from conformance.kit.verdict import COUNTS, CaseResult, Cause, Finding, Outcome, Report

SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~"})


def text(report: Report) -> str:
    """Verdict, counts, and what did not pass."""
    untested = [item for item in report.of(Outcome.NOT_TESTABLE) if not item.because]
    parts = [_heading(report), _causes(report), _counts(report), _baseline(report), _left(report)]
    parts += [_readings(report)]
    parts += [_cause(item, report) for item in report.causes]
    parts += [_unoffered(why, ids) for why, ids in unoffered(report).items()]
    parts += [_finding(item, report) for item in untested]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(report: Report) -> str:
    when, by = report.started.strftime("%Y-%m-%d %H:%M UTC"), report.requirements or "unreleased"
    where = f"`{_bare(report.url)}`, {when}, {report.extent}, requirements {by}"
    return f"# {_plain(report.title)}: {report.verdict}\n\n{where}"


def _causes(report: Report) -> str:
    """The causes at a glance."""
    return f"**{report.explained}**" if report.causes else ""


def _cause(cause: Cause, report: Report) -> str:
    """A requirement that failed, and what cannot be judged because of it."""
    told = _finding(cause.finding, report)
    if not cause.is_asked:
        told += "\n\nYou did not ask for this requirement; it is shown because it blocks others."
    if cause.blocked:
        told += f"\n\nNot testable because of it: {', '.join(item.requirement.id for item in cause.blocked)}"
    return told


def _unoffered(why: str, ids: list[str]) -> str:
    return f"## Not offered: {len(ids)}\n\n{_plain(why)}: {', '.join(ids)}"


def _counts(report: Report) -> str:
    rows = [("level or section", *COUNTS), ("---", *("--:" for _ in COUNTS))]
    for counted in (report.by_level(), report.by_section()):
        rows += [(_plain(name), *(str(row[count]) for count in COUNTS)) for name, row in counted.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _baseline(report: Report) -> str:
    standing = report.standing
    if standing is None:
        return ""
    known = [f"- {name}: known: {_plain(reason)}" for name, reason in standing.known.items()]
    return "\n".join(["## Baseline", "", *known, *(f"- **{_plain(words)}**" for words in standing.complaints)])


def _left(report: Report) -> str:
    if not report.left:
        return ""
    listed = "\n".join(f"- {_plain(path)}" for path in report.left)
    return f"## Could not be deleted: {len(report.left)}\n\n{listed}"


def _readings(report: Report) -> str:
    """Which readings the server keeps where a sentence allows several."""
    lines = [f"- {item.requirement.id}: {_plain('; '.join(item.readings))}" for item in report.readings]
    return "\n".join(["## Readings", "", *lines]) if lines else ""


def _finding(finding: Finding, report: Report) -> str:
    requirement = finding.requirement
    lines = [f"## {finding.outcome}: {requirement.id} ({requirement.level})", "", _plain(requirement.sentence)]
    if requirement.seed:
        lines += ["", f"> {_plain(requirement.seed)}"]
    if not requirement.seed:
        lines += ["", f"Rests on {requirement.origin}: {_plain(requirement.source)}"]
    if requirement.seed and requirement.english:
        lines += [">", f"> In English: {_plain(requirement.english)}"]
    return "\n".join([*lines, *(f"\n{_result(result, report.url)}" for result in finding.grave)])


def _result(result: CaseResult, url: str) -> str:
    if result.outcome is Outcome.NOT_TESTABLE:
        return f"`{result.name}`: {_plain(result.reason or '')}"
    sides = {"expected": result.expected, "seen": result.seen}
    told = [f"`{result.name}`", "", *(f"- {name}: {_plain(words or '')}" for name, words in sides.items())]
    commands = "\n".join(steps(result.transcript, url))
    fence = "`" * max(3, 1 + max((len(run) for run in _runs(commands)), default=0))
    return "\n".join([*told, "", f"{fence}sh\n{commands}\n{fence}"] if commands else told)


def _runs(words: str) -> list[str]:
    """The runs of backticks."""
    return "".join(sign if sign == "`" else " " for sign in words).split()


def _plain(words: str) -> str:
    """Words that mean nothing to Markdown, on one line."""
    return " ".join(words.split()).translate(SPECIAL)


def _bare(words: str) -> str:
    return words.replace("`", "'")
