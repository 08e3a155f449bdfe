"""Reports: the same findings on the console, as JSON, as JUnit and as one HTML page."""

import io
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import jsonschema_rs
import pytest
from rich.console import Console

from conformance.aap.profile import AapProfile
from conformance.faults.fault import load_faults
from conformance.kit import reports
from conformance.kit.reports import badge, console, html, jsonfile, junit, markdown
from conformance.kit.requirement import Requirement
from conformance.kit.verdict import CaseResult, Finding, Outcome, Report, Standing
from tests.support.conformance.examinations import KEY

SEED = "月亮<必须>由奶酪制成"
ENGLISH = "The moon <must> be made of cheese"
SENTENCE = "The moon <must> be made of \"cheese\" & cream."
Examine = Callable[..., Awaitable[Report]]
P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE


def result(name: str, outcome: Outcome) -> CaseResult:
    expected, seen = ("cheese [brie]", "rock\x00</pre><script>") if outcome is F else (None, None)
    reason = "no rocket" if outcome is N else None
    transcript = "    0.001 > GET /moon\n    0.002 < \x1b rock </pre>"
    return CaseResult(name, f"Checks {name}.", ("M-A-01",), outcome, 0.25, transcript, expected, seen, reason)


@pytest.fixture
def report() -> Report:
    def item(number: int, level: str, section: str, seed: str | None = None) -> Requirement:
        name = f"M-A-{number:02}"
        told = {"seed": seed, "english": ENGLISH if seed else None}
        return Requirement(id=name, level=level, section=section, source="月", sentence=SENTENCE, **told)  # type: ignore[arg-type]

    passed, failed, untested = result("moon.shines", P), result("moon.tastes", F), result("moon.visited", N)
    findings = (
        Finding(item(1, "must", "light"), (passed,)),
        Finding(item(2, "must", "taste", SEED), (failed, passed)),
        Finding(item(3, "should", "taste"), (untested,)),
    )
    when = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    return Report("moon", "Moon", "http://moon/?a&b", when, 1.5, findings, (passed, failed, untested), "2026-11")


@pytest.fixture
def known(report: Report) -> Report:
    return report.compared(Standing({"M-A-02": "<The cheese> is late."}, ("known.yaml:3: M-A-01 passes",)))


VALIDATOR = jsonschema_rs.Draft202012Validator(json.loads(jsonfile.SCHEMA_FILE.read_text()), validate_formats=True)


def problems(report: Report) -> list[str]:
    found = VALIDATOR.iter_errors(json.loads(jsonfile.text(report)))
    return [f"{error.instance_path}: {error.message}" for error in found]


def test_json_fits_the_schema_that_is_shipped(report: Report, known: Report) -> None:
    assert problems(report) == problems(known) == []
    told = json.loads(jsonfile.text(known))
    assert (told["schema"], told["version"], told["requirementSet"]) == ("dragoman-conformance-report", 1, "2026-11")
    assert told["baseline"]["known"] == {"M-A-02": "<The cheese> is late."}
    assert told["baseline"]["complaints"] == ["known.yaml:3: M-A-01 passes"]
    assert told["cases"][1]["reproduce"] == ["curl -sS -N 'http://moon/?a&b/moon'"]


@pytest.mark.parametrize("name", ["schema", "version", "verdict", "requirements", "cases", "baseline"])
def test_the_schema_notices_what_is_missing(report: Report, name: str) -> None:
    told = json.loads(jsonfile.text(report))
    del told[name]
    assert not VALIDATOR.is_valid(told)


@pytest.mark.parametrize(
    "damage",
    [{"version": 2}, {"verdict": "conformant"}, {"exitCode": 2}, {"requirementSet": "new"}, {"levels": {"ought": {}}}],
)
def test_the_schema_notices_what_is_wrong(report: Report, damage: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(json.loads(jsonfile.text(report)) | damage)


async def test_the_report_of_a_real_examination_fits_the_schema(examine: Callable[..., Awaitable[Report]]) -> None:
    wrong = await examine(load_faults("aap")["version-as-text"].server(), profile=AapProfile())
    assert {item.outcome for item in wrong.findings} == {P, F, N}
    assert problems(wrong.judged_by("2026-11")) == []


def test_json_has_everything_a_program_asks_for(report: Report) -> None:
    told = json.loads(jsonfile.text(report))
    assert {key: told[key] for key in ("dialect", "verdict", "exitCode", "url")} == {
        "dialect": "moon", "verdict": "fails", "exitCode": 1, "url": "http://moon/?a&b",
    }  # fmt: skip
    counts = {"passed": 1, "failed": 1, "blocked": 0, "not testable": 0, "not offered": 0, "not applicable": 0}
    assert told["levels"]["must"] == counts
    assert told["sections"]["taste"] == counts | {"passed": 0, "not testable": 1}
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
    assert outline.tags.count("script") == 1, "the filter"
    assert outline.tags.count("details") == 2 + 2 + 3, "a failure folds two; two sections, three origins"
    assert said.count(SENTENCE) == 3 + 2 + 1, "each in its section, once more if it did not pass, and as a cause"
    assert said.count(SEED) == said.count(ENGLISH) == 2
    assert "2026-11" in said
    for words in ("fails", "cheese [brie]", "GET /moon", "no rocket", "http://moon/?a&b", "curl -sS"):
        assert words in said
    assert "prefers-color-scheme: dark" in page
    assert "url(" not in page
    assert "@import" not in page


def test_html_tells_known_failures_apart(known: Report, report: Report) -> None:
    page = html.text(known)
    assert "Known failures" in page and "&lt;The cheese&gt; is late." in page
    assert "known.yaml:3: M-A-01 passes" in page
    assert "Known failures" not in html.text(report)


def test_html_says_where_the_document_is_silent(report: Report) -> None:
    failed = report.findings[1]
    silent = Finding(failed.requirement.model_copy(update={"seed": None}), failed.results)
    assert "silent here. Rests on what we hold to be right: 月" in html.text(replace(report, findings=(silent,)))
    told = Finding(silent.requirement.model_copy(update={"source": "protocol documentation, page 2"}), failed.results)
    words = "silent here. Rests on published documentation: protocol documentation, page 2"
    assert words in html.text(replace(report, findings=(told,)))
    documented = replace(report, findings=(told,))
    assert "Rests on published documentation: protocol documentation" in markdown.text(documented)
    assert json.loads(jsonfile.text(documented))["requirements"][0]["origin"] == "published documentation"


def test_the_translation_stands_beside_the_quote(report: Report) -> None:
    original = f'<div><h4>Chinese original</h4><blockquote lang="zh">{escape(SEED)}</blockquote></div>'
    quotes = f"{original}<div><h4>English</h4><blockquote>{escape(ENGLISH)}</blockquote></div>"
    assert quotes in html.text(report)
    told = "> 月亮\\<必须\\>由奶酪制成\n>\n> In English: The moon \\<must\\> be made of cheese\n"
    assert told in markdown.text(report)
    assert json.loads(jsonfile.text(report))["requirements"][1]["english"] == ENGLISH
    failed = report.findings[1]
    silent = Finding(failed.requirement.model_copy(update={"seed": None, "english": "moon"}), failed.results)
    assert "silent here. Rests on what we hold to be right: 月 (moon)" in html.text(replace(report, findings=(silent,)))


def test_every_report_tells_causes_first_and_what_they_block(report: Report) -> None:
    untested = report.findings[2]
    (stopped,) = (replace(it, reason="not testable because M-A-02 failed", because="M-A-02") for it in untested.results)
    found = replace(report, findings=(*report.findings[:2], Finding(untested.requirement, (stopped,))))
    assert problems(found) == []
    words = "1 cause explains 2 findings"
    told = {kind: reports.writer(kind)(found) for kind in ("json", "html", "markdown", "junit")}
    assert all(words in text for kind, text in told.items()), told
    assert words in printed(found, terminal=False)
    assert "  not testable because of it: 1 (M-A-03)" in printed(found, terminal=False)
    assert "Not testable because of it: M-A-03" in told["markdown"]
    assert '<p class="blocks">Not testable because of it: <a href="#M-A-03">M-A-03</a></p>' in told["html"]
    assert told["html"].index(words) < told["html"].index("Sections") < told["html"].index("<article")
    body = json.loads(told["json"])
    assert [(it["id"], it["asked"], it["blocked"]) for it in body["causes"]] == [("M-A-02", True, ["M-A-03"])]
    assert body["requirements"][2]["because"] == ["M-A-02"]
    assert 'type="blocked"' in told["junit"]


def test_a_cause_that_was_not_asked_for_is_told_as_such(report: Report) -> None:
    stopped = replace(report.results[2], reason="not testable because M-A-02 failed", because="M-A-02")
    findings = (Finding(report.findings[0].requirement, (stopped,)),)
    found = replace(report, findings=findings, aside=(report.findings[1],))
    told = {kind: reports.writer(kind)(found) for kind in ("html", "markdown")}
    assert "not asked for" in told["html"] and "You did not ask for this requirement" in told["markdown"]
    assert "you did not ask for this requirement" in printed(found, terminal=False)
    assert found.by_level()["must"]["failed"] == 0


def test_every_report_counts_what_could_not_be_deleted(report: Report) -> None:
    first, *others = report.results
    paths = tuple(f"/sessions/<{number}>" for number in range(7))
    left = replace(report, results=(replace(first, left=paths), *others))
    words = "could not be deleted, and is still on the server: 7 (/sessions/<0>, "
    assert words in printed(left, terminal=False) and " and 2 more)" in printed(left, terminal=False)
    assert json.loads(jsonfile.text(left))["leftBehind"] == list(paths)
    assert problems(left) == []
    page = html.text(left)
    assert '<dt>could not be deleted</dt><dd><a href="#left">7</a></dd>' in page
    assert "<li><code>/sessions/&lt;6&gt;</code></li>" in page
    assert "## Could not be deleted: 7\n\n- /sessions/\\<0\\>\n" in markdown.text(left)
    for kind in ("json", "html", "markdown"):
        assert "be deleted" not in reports.writer(kind)(report)
    assert "be deleted" not in printed(report, terminal=False)


def test_every_report_tells_which_reading_of_a_sentence_was_seen(report: Report) -> None:
    first, *others = report.findings
    told = replace(report, findings=(replace(first, readings=("cheese is a string", "<cream>")), *others))
    assert json.loads(jsonfile.text(told))["requirements"][0]["readings"] == ["cheese is a string", "<cream>"]
    assert problems(told) == []
    assert "reading of M-A-01: cheese is a string; <cream>" in printed(told, terminal=False)
    assert "## Readings\n\n- M-A-01: cheese is a string; \\<cream\\>" in markdown.text(told)
    assert "this server: cheese is a string; &lt;cream&gt;." in html.text(told)
    for words in (printed(report, terminal=False), markdown.text(report), html.text(report)):
        assert "reading" not in words.lower()


def test_a_quote_that_is_no_chinese_needs_no_translation(report: Report) -> None:
    failed = report.findings[1]
    code = Finding(failed.requirement.model_copy(update={"seed": "version: 3", "english": None}), failed.results)
    page = html.text(replace(report, findings=(code,)))
    assert "<blockquote>version: 3</blockquote>" in page and "<div class=\"quotes\">" not in page
    assert "In English" not in markdown.text(replace(report, findings=(code,)))


def test_a_case_that_fails_two_requirements_shows_its_traffic_once(report: Report) -> None:
    failed = report.findings[1]
    other = Finding(failed.requirement.model_copy(update={"id": "M-A-09"}), failed.results)
    page = html.text(replace(report, findings=(failed, other)))
    assert page.count("Wire transcript") == 1
    assert page.count('href="#case-moon.tastes"') == page.count("id=case-moon.tastes") == 1


def test_the_middle_of_a_very_long_transcript_is_left_out(report: Report) -> None:
    long = "\n".join(f"    0.001 > line {number:04}" for number in range(2000))
    failed = replace(report.findings[1].results[0], transcript=long)
    page = html.text(replace(report, findings=(Finding(report.findings[1].requirement, (failed,)),)))
    assert "line 0000" in page and "line 1999" in page and "line 1000" not in page
    assert "1760 lines; --transcripts keeps them all" in page


def test_reasons_that_are_shared_are_told_once(report: Report) -> None:
    untested = report.findings[2]
    other = Finding(untested.requirement.model_copy(update={"id": "M-A-08"}), untested.results)
    page = html.text(replace(report, findings=(untested, other)))
    assert page.count("<p>no rocket</p>") == 1
    assert 'id="M-A-03"' in page and 'id="M-A-08"' in page


def test_markdown_has_the_failures_and_means_nothing_else(report: Report, known: Report) -> None:
    told = markdown.text(report)
    assert told.startswith("# Moon: fails\n")
    assert "| must | 1 | 1 | 0 | 0 |" in told
    assert "## failed: M-A-02 (must)" in told and "## not testable: M-A-03 (should)" in told
    assert "\\<script\\>" in told and "<script>" not in told
    assert "> 月亮\\<必须\\>由奶酪制成" in told
    assert "```sh\ncurl -sS -N 'http://moon/?a&b/moon'\n```" in told
    assert "- M-A-02: known: \\<The cheese\\> is late." in markdown.text(known)


def test_a_badge_is_a_small_picture_with_words(report: Report) -> None:
    root = ElementTree.fromstring(badge.text(report))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [item.text for item in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["moon conformance", "fails · 1 of 2 MUST"]
    assert root.get("aria-label") == "Moon: fails · 1 of 2 MUST"


def test_the_console_tells_how_the_baseline_stands(known: Report, report: Report) -> None:
    assert "known.yaml:3: M-A-01 passes" in printed(known, terminal=False)
    assert "1 known: M-A-02; not as the baseline says" in printed(known, terminal=False)
    sound = report.compared(Standing({"M-A-02": "It is late."}))
    assert "1 known: M-A-02; as the baseline says" in printed(sound, terminal=False)
    assert "baseline" not in printed(report, terminal=False)


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


def test_a_terminal_is_told_what_is_being_asked_and_how_long_is_left(report: Report) -> None:
    console_ = Console(file=io.StringIO(), force_terminal=True, width=100)
    with console.progress(console_, 2) as note:
        note.begun("moon.shines", "The moon shines [at night].")
        note.begun("moon.tastes", "The moon tastes of cheese.")
        note._bar.refresh()  # type: ignore[union-attr]
        note(report.results[0])
        note._bar.refresh()  # type: ignore[union-attr]
    file = console_.file
    assert isinstance(file, io.StringIO)
    first, second = file.getvalue().index("shines [at night]"), file.getvalue().index("tastes of cheese")
    assert first < second and "left" in file.getvalue()


def test_the_console_on_a_terminal_has_colour(report: Report) -> None:
    told = printed(report, terminal=True)
    assert "\x1b[" in told
    assert SENTENCE in told


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("a.json", "json", "a.json"),
        ("junit=a.txt", "junit", "a.txt"),
        ("a.xml", "junit", "a.xml"),
        ("b/a=c.html", "html", "b/a=c.html"),
        ("x.md", "markdown", "x.md"),
        ("x.svg", "badge", "x.svg"),
        ("html", "html", "report-aap.html"),
        ("junit", "junit", "report-aap.xml"),
        ("json", "json", "report-aap.json"),
        ("markdown", "markdown", "report-aap.md"),
        ("badge", "badge", "badge-aap.svg"),
    ],
)
def test_destinations_are_understood(text: str, kind: str, path: str) -> None:
    assert reports.parse_destination(text, "aap") == (kind, Path(path))


@pytest.mark.parametrize("text", ["a.pdf", "pdf=a.pdf", "report", "html="])
def test_destinations_that_are_not_say_what_would_be(text: str) -> None:
    with pytest.raises(ValueError, match="say one of html, junit, json, markdown, badge"):
        reports.parse_destination(text, "aap")


def test_every_format_has_a_writer(report: Report, tmp_path: Path) -> None:
    for kind in ("json", "junit", "html", "markdown", "badge"):
        reports.write_report(report, kind, tmp_path / "deep" / kind)
        assert (tmp_path / "deep" / kind).read_text() == reports.writer(kind)(report)


def test_transcripts_are_a_file_per_case(report: Report, tmp_path: Path) -> None:
    reports.write_transcripts(report, tmp_path / "deep" / "wire")
    files = {path.name: path.read_text() for path in (tmp_path / "deep" / "wire").iterdir()}
    assert sorted(files) == ["moon.shines.txt", "moon.tastes.txt", "moon.visited.txt"]
    assert "GET /moon" in files["moon.shines.txt"]
    assert "expected cheese" in files["moon.tastes.txt"]


async def test_a_key_that_the_server_returns_is_in_no_report(examine_blade: Examine, tmp_path: Path) -> None:
    server = load_faults("blade")["plaintext-twice"].server(key=KEY)
    minted: list[str] = []
    keep, server.state.tokens = server.state.tokens, Kept(minted)
    assert keep == {}
    found = await examine_blade(server, "BL-KEY-01", "BL-KEY-02", "BL-KEY-03")
    assert [item.requirement.id for item in found.of(F)] == ["BL-KEY-03"] and minted
    told = everything(found, tmp_path)
    for words in told:
        assert not [secret for secret in (KEY, *minted) if secret in words]
    assert "[redacted-" in told[0] and '"$ID' in told[0], "the commands read the key out of the answer"


def everything(report: Report, folder: Path) -> list[str]:
    """The report in every form it can be had."""
    reports.write_transcripts(report, folder)
    told = [reports.writer(kind)(report) for kind in ("json", "junit", "html", "markdown", "badge")]
    return [*told, printed(report, terminal=False), *(path.read_text() for path in folder.iterdir())]


class Kept(dict[str, str]):
    """Remembers whatever was put into it."""

    def __init__(self, values: list[str]) -> None:
        super().__init__()
        self._values = values

    def __setitem__(self, name: str, value: str) -> None:
        self._values.append(value)
        super().__setitem__(name, value)
