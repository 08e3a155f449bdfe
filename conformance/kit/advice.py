"""Advice for reports that look as if the address, the key or the profile were wrong."""

import re
from collections import Counter

from conformance.kit.verdict import Outcome, Report, Verdict

ANSWER = re.compile(r"^ *[\d.]+ < (\d{3}) ", re.MULTILINE)
ENOUGH = 10
"""Fewer answers than these say nothing of the whole."""
MOST = 2 / 3
STRANGER = ("no --profile was given, so the agent was taken to obey the demo agent's directives (/think, /tool …); "
            "if it does not, what failed may be the agent: --print-profile prints a profile to edit")


def advice(report: Report, *, has_key: bool, has_profile: bool = True) -> str | None:
    """One line of advice if the address or the key seems to be wrong; None if nothing suggests that."""
    if report.verdict is Verdict.CONFORMS:
        return None
    answers = Counter(status for result in report.results for status in ANSWER.findall(result.transcript))
    if answers.total() < ENOUGH:
        return None
    if answers["401"] + answers["403"] > MOST * answers.total():
        hint = "is it the right key?" if has_key else "give its key with --key or in CONFORM_KEY"
        return f"the server refused most requests (401 or 403); {hint}"
    if answers["404"] > MOST * answers.total():
        return f"the server answered most requests with 404; does a server of {report.dialect} answer at {report.url}?"
    if not any(result.outcome is Outcome.PASSED for result in report.results):
        return f"nothing passed; does a server of {report.dialect} answer at {report.url}?"
    return STRANGER if report.verdict is Verdict.FAILS and not has_profile else None
