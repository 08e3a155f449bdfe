"""The report as JUnit XML, for continuous integration: a suite per section, a test case per requirement."""

import re
from xml.etree.ElementTree import Comment, Element, SubElement, indent, tostring

from conformance.kit.verdict import Finding, Outcome, Report

FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(report: Report) -> str:
    """The document as a string."""
    root = Element("testsuites", name=f"{report.title} at {_clean(report.url)}", time=f"{report.seconds:.3f}")
    if report.causes:
        names = " ".join(cause.finding.requirement.id for cause in report.causes)
        root.append(Comment(_clean(f" {report.explained}: {names} ")))
    _count(root, report.findings)
    for section in report.by_section():
        findings = tuple(item for item in report.findings if item.requirement.section == section)
        suite = SubElement(root, "testsuite", name=f"{report.dialect}.{section}")
        _count(suite, findings)
        for finding in findings:
            _add(suite, report.dialect, finding)
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _count(element: Element, findings: tuple[Finding, ...]) -> None:
    outcomes = [item.outcome for item in findings]
    element.set("tests", str(len(outcomes)))
    element.set("failures", str(outcomes.count(Outcome.FAILED)))
    element.set("skipped", str(sum(outcome not in (Outcome.PASSED, Outcome.FAILED) for outcome in outcomes)))


def _add(suite: Element, dialect: str, finding: Finding) -> None:
    requirement = finding.requirement
    case = SubElement(
        suite,
        "testcase",
        classname=f"{dialect}.{requirement.section}",
        name=f"{requirement.id} ({requirement.level}): {requirement.sentence}",
        time=f"{finding.seconds:.3f}",
    )
    if finding.outcome is Outcome.PASSED:
        return
    told = "; ".join(f"{result.name}: {result.remark}" for result in finding.grave)
    remarks = requirement.not_applicable or finding.not_offered or told
    verdict = SubElement(case, "failure" if finding.outcome is Outcome.FAILED else "skipped", message=_clean(remarks))
    if finding.because:
        verdict.set("type", "blocked")
    if finding.outcome is Outcome.FAILED:
        transcripts = [f"{result.name}\n{result.transcript}" for result in finding.grave]
        verdict.text = _clean("\n\n".join(transcripts))


def _clean(text: str) -> str:
    """XML cannot hold every character, even escaped."""
    return FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
