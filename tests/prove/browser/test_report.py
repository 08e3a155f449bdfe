"""The HTML report as people see it: light and dark, wide and narrow, folded and unfolded, without any network."""

from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from conformance.faults.fault import load_faults
from conformance.faults.local_server import served
from conformance.kit.reports import write_report
from conformance.kit.requirement import Level
from conformance.kit.runner import Runner
from conformance.kit.suite import Target, load_suite
from conformance.kit.verdict import Report, Standing
from tests.simulation import simulated

KEY = "the-key-of-the-examiners"
SECTIONS = {"aap": ("AAP-META", "AAP-SSE", "AAP-TOOL"), "zenflux": ("ZF-GEN", "ZF-WS-")}
READABLE = 4.5
CONTRASTS = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let it = element; it; it = it.parentElement) {
      const colour = rgba(getComputedStyle(it).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const said = (element) => [...element.childNodes].some((it) => it.nodeType === 3 && it.textContent.trim());
  return [...document.body.querySelectorAll('*')].filter((it) => said(it) && it.getClientRects().length).map((it) => {
    const [one, other] = [light(rgba(getComputedStyle(it).color)), light(behind(it))].sort((a, b) => b - a);
    return [(one + 0.05) / (other + 0.05), it.tagName + '.' + it.className + ': ' + it.textContent.trim().slice(0, 40)];
  });
}"""


async def _examined(dialect: str, fault: Any) -> Report:
    suite = load_suite(dialect)
    wanted = [item for item in suite.catalogue.requirements if item.id.startswith(SECTIONS[dialect])]
    async with served(fault.server(key=KEY) if dialect == "aap" else fault.server()) as url:
        settings = suite.read_profile()
        if dialect == "zenflux":
            settings = settings.model_copy(update={"heartbeat": None})
        report = await Runner(suite, Target(url, KEY, 3.0), settings, at_once=16).run(wanted)
    return report.judged_by("2026-11")


def apart(work: Coroutine[Any, Any, Report]) -> Report:
    """What comes of the work, done in a thread of its own: the browser has this one's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(simulated, work).result(60)


@pytest.fixture(scope="module")
def report() -> Report:
    """A server that fails in several ways, one of them known, held against a baseline that says too much."""
    found = apart(_examined("aap", load_faults("aap")["trust-ignored"]))
    failed = [item.requirement.id for item in found.findings if item.outcome == "failed"]
    assert len(failed) > 1
    return found.compared(Standing({failed[0]: "It is being mended."}, ("known.yaml:7: AAP-SSE-01 passes",)))


@pytest.fixture(scope="module")
def page_file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(report, "html", path)
    return path


Look = Callable[..., Page]


@pytest.fixture(scope="module")
def look(browser: Browser, page_file: Path) -> Iterator[Look]:
    """The page as it comes, in a window of this kind; asking for anything but the file itself is an error."""
    context = browser.new_context()
    pages: dict[Path, Page] = {}

    def opened(path: Path) -> Page:
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: asked.append(f"console: {message.text}"))
        page.goto(path.as_uri())
        page.wait_for_load_state("networkidle")
        assert asked == [path.as_uri()]
        page.evaluate("document.querySelectorAll('details').forEach((it) => { it.wasOpen = it.open })")
        return page

    def at(width: int = 1200, scheme: str = "light", path: Path = page_file) -> Page:
        page = pages[path] = pages.get(path) or opened(path)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = it.wasOpen }); scrollTo(0, 0)")
        return page

    yield at
    context.close()


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true })")


@pytest.mark.parametrize("width", [1200, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read(look: Look, scheme: str, width: int) -> None:
    page = look(width, scheme)
    unfold(page)
    found = page.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [words for contrast, words in found if contrast < READABLE] == []


def test_dark_is_dark_and_light_is_light(look: Look) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    backs = [look(scheme=scheme).evaluate(colour) for scheme in ("light", "dark")]
    assert backs == ["rgb(250, 249, 247)", "rgb(21, 23, 26)"]


@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_nothing_hangs_over_the_edge(look: Look, width: int) -> None:
    page = look(width)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_verdict_is_the_first_thing_seen(look: Look, report: Report) -> None:
    page = look(390)
    verdict = page.locator(".verdict strong")
    assert verdict.inner_text() == "fails"
    box = verdict.bounding_box()
    assert box is not None
    assert box["y"] < 300
    assert page.title() == f"{report.title}: fails"


def test_long_things_are_folded_until_asked_for(look: Look) -> None:
    page = look()
    wire = page.locator("details", has=page.locator("summary", has_text="Wire transcript")).first
    assert not wire.locator("pre").is_visible()
    wire.locator("summary").click()
    assert wire.locator("pre").is_visible()
    assert "GET /meta" in wire.locator("pre").inner_text()
    wire.locator("summary").press("Enter")
    assert not wire.locator("pre").is_visible()


def test_a_failure_has_its_sentence_both_sides_and_a_command(look: Look, report: Report) -> None:
    page = look()
    unfold(page)
    known = dict(report.standing.known) if report.standing else {}
    [first, *_] = [item for item in report.findings
                   if item.outcome == "failed" and item.requirement.english and item.requirement.id not in known]
    article = page.locator(f"article#{first.requirement.id}")
    assert article.locator(".sentence").inner_text() == first.requirement.sentence
    assert article.locator("blockquote[lang=zh]").inner_text() == first.requirement.seed
    expected, seen = (article.locator(f".{side}").first.bounding_box() for side in ("expected", "seen"))
    assert expected is not None and seen is not None
    assert expected["y"] == seen["y"] and expected["x"] + expected["width"] <= seen["x"]
    assert "curl -sS" in article.locator(".steps").first.inner_text()
    assert KEY not in page.content()


def test_on_a_narrow_screen_the_sides_stand_one_below_the_other(look: Look) -> None:
    page = look(390)
    expected, seen = (page.locator(f".{side}").first.bounding_box() for side in ("expected", "seen"))
    assert expected is not None and seen is not None
    assert expected["x"] == seen["x"] and expected["y"] + expected["height"] <= seen["y"]


def test_links_lead_to_what_they_name(look: Look) -> None:
    page = look()
    places = page.evaluate("[...document.querySelectorAll('a[href]')].map((it) => it.getAttribute('href'))")
    assert len(places) > 5
    assert [place for place in places if page.locator(f"[id='{place[1:]}']").count() != 1] == []


def test_the_filter_leaves_what_has_all_the_words(look: Look, report: Report) -> None:
    page = look()
    box, rows = page.get_by_label("Filter"), page.locator("table.all tr")
    every = rows.count()
    assert every == len(report.findings)
    box.fill("AAP-META must")
    named = [item.requirement for item in report.findings if "META" in item.requirement.id]
    shown = [requirement for requirement in named if requirement.level is Level.MUST]
    assert len(shown) < len(named)
    assert page.locator("table.all tr:visible").count() == len(shown) < every, "the section is unfolded"
    assert page.locator("#found").inner_text() == f"{len(shown)} of {every} requirements"
    box.fill("nobody has these words")
    assert page.locator("article:visible, table.all tr:visible, .causes li:visible").count() == 0
    box.fill("")
    assert page.locator("article:visible").count() == len(report.causes)
    assert page.locator("#found").inner_text() == ""


def test_the_original_stands_beside_its_translation(look: Look) -> None:
    page = look()
    quotes = page.locator("article .quotes:visible").first
    assert quotes.locator("h4").all_inner_texts() == ["Chinese original", "English"]
    left, right = (quotes.locator("blockquote").nth(place).bounding_box() for place in (0, 1))
    assert left is not None and right is not None
    assert left["y"] == right["y"] and left["x"] + left["width"] <= right["x"]


def test_known_failures_and_the_baseline_are_told_apart(look: Look, report: Report) -> None:
    page = look()
    headings = page.locator("h2").all_inner_texts()
    assert [words.split("\n")[0].rstrip(" 0123456789") for words in headings][:5] == [
        "The baseline no longer holds", report.explained, "Sections", "Failures", "Known failures",
    ]  # fmt: skip
    assert page.locator(".known").inner_text() == "Known: It is being mended."


def test_what_a_server_says_is_never_taken_for_markup(look: Look, report: Report, tmp_path: Path) -> None:
    nasty = "<img src=x onerror=alert(1)></pre><script>alert(1)</script>"
    results = tuple(
        replace(item, expected=item.expected and nasty, seen=item.seen and nasty, transcript=f"    0.001 < {nasty}")
        for item in report.results
    )
    findings = tuple(
        replace(item, results=tuple(it for it in results if item.requirement.id in it.requirements))
        for item in report.findings
    )
    write_report(replace(report, results=results, findings=findings, url=nasty), "html", tmp_path / "nasty.html")
    page = look(path=tmp_path / "nasty.html")
    unfold(page)
    assert page.locator("script, img").count() == 1, "the filter's own"
    assert nasty in page.locator(".seen pre").first.inner_text()


def test_a_dialect_of_many_sections_and_sockets_is_no_wider(look: Look, tmp_path: Path) -> None:
    found = apart(_examined("zenflux", load_faults("zenflux")["other-ids"]))
    write_report(found, "html", tmp_path / "zenflux.html")
    page = look(390, path=tmp_path / "zenflux.html")
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("summary", has_text="curl and websocat").count() > 0
    assert "websocat" in page.locator(".steps").first.inner_text()


def test_the_badge_is_drawn(browser: Browser, report: Report, tmp_path: Path) -> None:
    write_report(report, "badge", tmp_path / "badge.svg")
    page = browser.new_page()
    page.goto((tmp_path / "badge.svg").as_uri())
    widths = page.evaluate("[...document.querySelectorAll('text')].map((it) => it.getBBox().width)")
    whole = page.evaluate("document.documentElement.width.baseVal.value")
    page.close()
    assert len(widths) == 2
    assert sum(widths) < whole < 400
