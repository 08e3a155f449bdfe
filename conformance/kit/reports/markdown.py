"""The report as Markdown, for a pull request or an issue."""

from conformance.kit.reproduce import steps
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report

SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~"})


def text(report: Report) -> str:
    """Verdict, counts, and what did not pass."""
    unsettled = (Outcome.FAILED, Outcome.NOT_TESTABLE)
    told = [finding for outcome in unsettled for finding in report.of(outcome)]
    parts = [_heading(report), _counts(report), _baseline(report), _left(report)]
    parts += [_finding(item, report) for item in told]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(report: Report) -> str:
    when, by = report.started.strftime("%Y-%m-%d %H:%M UTC"), report.requirements or "unreleased"
    where = f"`{_bare(report.url)}`, {when}, {len(report.results)} cases in {report.seconds:.1f} s, requirements {by}"
    return f"# {_plain(report.title)}: {report.verdict}\n\n{where}"


def _counts(report: Report) -> str:
    rows = [("level or section", *(outcome.value for outcome in Outcome)), ("---", *("--:" for _ in Outcome))]
    for counted in (report.by_level(), report.by_section()):
        rows += [(_plain(name), *(str(row[outcome]) for outcome in Outcome)) for name, row in counted.items()]
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


def _finding(finding: Finding, report: Report) -> str:
    requirement = finding.requirement
    lines = [f"## {finding.outcome}: {requirement.id} ({requirement.level})", "", _plain(requirement.sentence)]
    if requirement.seed:
        lines += ["", f"> {_plain(requirement.seed)}"]
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
