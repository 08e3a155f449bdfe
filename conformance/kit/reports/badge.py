"""The report as a badge: one small SVG with the verdict and how many of the MUSTs passed."""

from html import escape

from conformance.kit.requirement import Level
from conformance.kit.verdict import Outcome, Report, Verdict

COLOURS = {Verdict.CONFORMS: "#1a7f45", Verdict.FAILS: "#b3261e", Verdict.INCOMPLETE: "#8a5a00"}
PER_CHARACTER, MARGIN, HEIGHT = 6.6, 8, 20


def text(report: Report) -> str:
    """The SVG."""
    label, value = f"{report.dialect} conformance", _value(report)
    left, right = _width(label), _width(value)
    told = escape(f"{report.title}: {value}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" '
        f'aria-label="{told}"><title>{told}</title>'
        f'<clipPath id="edge"><rect width="{left + right}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#edge)"><rect width="{left}" height="{HEIGHT}" fill="#3d444d"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{COLOURS[report.verdict]}"/></g>'
        f'<g fill="#fff" font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">'
        f"{_words(label, 0, left)}{_words(value, left, right)}</g></svg>\n"
    )


def _value(report: Report) -> str:
    musts = [item.outcome for item in report.findings if item.requirement.level is Level.MUST]
    asked = [outcome for outcome in musts if outcome not in (Outcome.NOT_APPLICABLE, Outcome.NOT_OFFERED)]
    return f"{report.verdict} · {asked.count(Outcome.PASSED)} of {len(asked)} MUST"


def _width(words: str) -> int:
    return round(len(words) * PER_CHARACTER) + 2 * MARGIN


def _words(words: str, start: int, width: int) -> str:
    return f'<text x="{start + MARGIN}" y="14" textLength="{width - 2 * MARGIN}">{escape(words)}</text>'
