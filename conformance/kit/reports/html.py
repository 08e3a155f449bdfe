"""The report as one HTML file that loads nothing else."""

from base64 import b64encode
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

from conformance.kit.reports.html_parts import article, cause_list, counts, folded_section, gathered, overview, share
from conformance.kit.requirement import Level
from conformance.kit.verdict import Cause, Outcome, Report, Verdict

PAGE = Path(__file__).parent / "page.html"
SCRIPT = Path(__file__).parent / "filter.js"
SAID = {
    Verdict.CONFORMS: "Every MUST passed.",
    Verdict.FAILS: "At least one MUST failed.",
    Verdict.INCOMPLETE: "No MUST failed, but not every MUST could be tested.",
}


def text(report: Report) -> str:
    """The whole page."""
    known = report.standing.known if report.standing else {}
    causes, script = report.causes, SCRIPT.read_text(encoding="utf-8")
    shown: set[str] = set()
    return Template(PAGE.read_text(encoding="utf-8")).substitute(
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
        number=len(report.findings),
        causes=cause_list(report),
        title=escape(report.title),
        verdict=report.verdict.value,
        said=_said(report),
        about=_about(report),
        shares="".join(_share(level, report) for level in Level),
        overview=overview(report),
        levels=counts("level", report.by_level()),
        sections=counts("section", report.by_section()),
        baseline=_baseline(report),
        failures=_articles("Failures", [it for it in causes if it.finding.requirement.id not in known], report, shown),
        known=_articles("Known failures", [it for it in causes if it.finding.requirement.id in known], report, shown),
        untested=_untested(report) + _left(report),
        requirements="\n".join(folded_section(name, report) for name in report.by_section()),
    )


def _said(report: Report) -> str:
    if report.standing is None:
        return SAID[report.verdict]
    is_known = report.exit_code == 0
    stands = "What does not pass is what the baseline says." if is_known else "It differs from the baseline."
    return f"{SAID[report.verdict]} {stands}"


def _about(report: Report) -> str:
    terms = {
        "server": f"<code>{escape(report.url)}</code>",
        "examined": report.started.strftime("%Y-%m-%d %H:%M UTC"),
        "took": f"{report.seconds:.1f} s for {len(report.results)} cases",
        "requirements": escape(report.requirements or "unreleased"),
    }
    if report.left:
        terms["could not be deleted"] = f'<a href="#left">{len(report.left)}</a>'
    return "".join(f"<div><dt>{name}</dt><dd>{told}</dd></div>" for name, told in terms.items())


def _share(level: Level, report: Report) -> str:
    found = [item.count for item in report.findings if item.requirement.level is level]
    return share(level.value, found) if found else ""


def _articles(title: str, causes: list[Cause], report: Report, shown: set[str]) -> str:
    if not causes:
        return ""
    told = "\n".join(article(item, report, shown) for item in causes)
    return f'<section><h2>{title} <span class="count">{len(causes)}</span></h2>\n{told}</section>'


def _untested(report: Report) -> str:
    untested = [item for item in report.of(Outcome.NOT_TESTABLE) if not item.because]
    exempt = report.of(Outcome.NOT_APPLICABLE)
    parts = [
        ("Blocked", "What cannot be judged because another requirement failed.", report.blocked),
        ("Not testable", "What could not be brought about. It neither passes nor fails.", untested),
        ("Not offered", "Parts of the protocol that the server does without, and may.", report.of(Outcome.NOT_OFFERED)),
        ("Not applicable", "Sentences of the protocol that no server can be held to.", exempt),
    ]
    return "".join(
        f'<section><h2>{title} <span class="count">{len(found)}</span></h2><p class="soft">{words}</p>'
        f"{gathered(found)}</section>"
        for title, words, found in parts
        if found
    )


def _left(report: Report) -> str:
    if not report.left:
        return ""
    listed = "".join(f"<li><code>{escape(path)}</code></li>" for path in report.left)
    return (
        f'<section id="left"><h2>Could not be deleted <span class="count">{len(report.left)}</span></h2>'
        f'<p class="soft">The examination made this, and it is still on the server.</p><ul>{listed}</ul></section>'
    )


def _baseline(report: Report) -> str:
    if report.standing is None or not report.standing.complaints:
        return ""
    listed = "".join(f"<li>{escape(words)}</li>" for words in report.standing.complaints)
    return f'<section class="complaints"><h2>The baseline no longer holds</h2><ul>{listed}</ul></section>'
