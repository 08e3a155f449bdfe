"""Reports: the same findings on the console, as JSON, as JUnit and as one HTML page."""

import io
import json
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from conformance.kit.reports import console, html, jsonfile, junit, parse_destination, write_transcripts, writer
from conformance.kit.requirement import Requirement
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report

SENTENCE = "The moon <must> be made of \"cheese\" & cream."
P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE


def result(name: str, outcome: Outcome) -> CaseResult:
    expected, seen = ("cheese [brie]", "rock\x00</pre><script>") if outcome is F else (None, None)
    reason = "no rocket" if outcome is N else None
    transcript = "    0.001 > GET /moon\n    0.002 < \x1b rock </pre>"
    return CaseResult(name, f"Checks {name}.", ("M-A-01",), outcome, 0.25, transcript, expected, seen, reason)


@pytest.fixture
def report() -> Report:
    def item(number: int, level: str, section: str) -> Requirement:
        name = f"M-A-{number:02}"
        return Requirement(id=name, level=level, section=section, source="月", sentence=SENTENCE)  # type: ignore[arg-type]

    passed, failed, untested = result("moon.shines", P), result("moon.tastes", F), result("moon.visited", N)
    findings = (
        Finding(item(1, "must", "light"), (passed,)),
        Finding(item(2, "must", "taste"), (failed, passed)),
        Finding(item(3, "should", "taste"), (untested,)),
    )
    when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    return Report("moon", "Moon", "http://moon/?a&b", when, 1.5, findings, (passed, failed, untested))


def test_json_has_everything_a_program_asks_for(report: Report) -> None:
    told = json.loads(jsonfile.text(report))
    assert {key: told[key] for key in ("dialect", "verdict", "exitCode", "url")} == {
        "dialect": "moon", "verdict": "fails", "exitCode": 1, "url": "http://moon/?a&b",
    }  # fmt: skip
    assert told["levels"]["must"] == {"passed": 1, "failed": 1, "not testable": 0, "not applicable": 0}
    assert told["sections"]["taste"] == {"passed": 0, "failed": 1, "not testable": 1, "not applicable": 0}
    failed = told["requirements"][1]
    assert failed["outcome"] == "failed"
    assert failed["sentence"] == SENTENCE
    assert failed["remarks"] == ["expected cheese [brie]; seen: rock\x00</pre><script>"]
    assert [("transcript" in case) for case in told["cases"]] == [False, True, True]


def test_junit_is_xml_with_a_case_per_requirement(report: Report) -> None:
    root = ElementTree.fromstring(junit.text(report))
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("skipped")) == ("testsuites", "3", "1", "1")
    assert [suite.get("name") for suite in root] == ["moon.light", "moon.taste"]
    failure = root.find(".//failure")
    assert failure is not None
    assert "cheese [brie]" in failure.get("message", "")
    assert "GET /moon" in (failure.text or "")
    skipped = root.find(".//skipped")
    assert skipped is not None
    assert skipped.get("message") == "moon.visited: no rocket"


class Outline(HTMLParser):
    """Which tags are open, what is loaded from elsewhere, and what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loaded: list[str] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        addresses = [value or "" for name, value in attrs if name in ("src", "href")]
        self.loaded += [address for address in addresses if not address.startswith("#")]

    def handle_data(self, data: str) -> None:
        self.said.append(data)


def test_html_is_one_page_that_loads_nothing(report: Report) -> None:
    page = html.text(report)
    outline = Outline()
    outline.feed(page)
    said = "".join(outline.said)
    assert outline.loaded == []
    assert "script" not in outline.tags
    assert outline.tags.count("details") == 2
    assert said.count(SENTENCE) == 5
    for words in ("fails", "cheese [brie]", "GET /moon", "no rocket", "http://moon/?a&b", "月"):
        assert words in said
    assert "prefers-color-scheme: dark" in page
    assert "url(" not in page
    assert "@import" not in page


def printed(report: Report, terminal: bool) -> str:
    console_ = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with console.progress(console_, len(report.results)) as note:
        for item in report.results:
            note(item)
    console.conclude(console_, report)
    file = console_.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_the_console_without_a_terminal_gets_plain_lines(report: Report) -> None:
    told = printed(report, terminal=False)
    assert told.startswith("passed       moon.shines\nfailed       moon.tastes\nnot testable moon.visited\n")
    assert "failed M-A-02 (must)" in told
    assert "expected  cheese [brie]" in told
    assert "fails: Moon at http://moon/?a&b" in told
    assert "\x1b[" not in told


def test_the_console_on_a_terminal_has_colour(report: Report) -> None:
    told = printed(report, terminal=True)
    assert "\x1b[" in told
    assert SENTENCE in told


@pytest.mark.parametrize(
    ("text", "kind"), [("a.json", "json"), ("junit=a.txt", "junit"), ("a.xml", "junit"), ("b/a=c.html", "html")]
)
def test_destinations_are_understood(text: str, kind: str) -> None:
    found, path = parse_destination(text)
    assert found == kind
    assert str(path) == text.removeprefix("junit=")


@pytest.mark.parametrize("text", ["a.pdf", "pdf=a.pdf", "report"])
def test_destinations_that_are_not_say_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match="say json=PATH"):
        parse_destination(text)


def test_every_format_has_a_writer(report: Report) -> None:
    assert all(writer(kind)(report) for kind in ("json", "junit", "html"))


def test_transcripts_are_a_file_per_case(report: Report, tmp_path: Path) -> None:
    write_transcripts(report, tmp_path / "deep" / "wire")
    files = {path.name: path.read_text() for path in (tmp_path / "deep" / "wire").iterdir()}
    assert sorted(files) == ["moon.shines.txt", "moon.tastes.txt", "moon.visited.txt"]
    assert "GET /moon" in files["moon.shines.txt"]
    assert "expected cheese" in files["moon.tastes.txt"]
