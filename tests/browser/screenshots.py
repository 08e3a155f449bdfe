"""Take pictures of the console for the documentation: `python -m tests.browser.screenshots` writes docs/img."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.conftest import CHROMIUM, FLAGS
from tests.support.console_page import ConsoleApi, console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import running

FOLDER = Path(__file__).parents[3] / "docs" / "img"
TITLES = ("Refund for order 1207", "Plan the harbour tour", "Translate the menu", "Weather in Istanbul", "Minutes")
WIDE = {"viewport": {"width": 1440, "height": 860}}
PHONE = {"viewport": {"width": 360, "height": 740}}


class Photographer:
    """Opens the console in windows of several kinds, and writes what they show."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser = browser
        self.address = address

    @contextmanager
    def window(self, place: str, **context: Any) -> Iterator[Page]:
        with console_page(self.browser, self.address, reduced_motion="reduce", **{**WIDE, **context}) as console:
            yield console.go(place).page

    def take(self, page: Page, name: str) -> None:
        page.wait_for_load_state("load")
        page.evaluate("document.fonts.ready")
        page.screenshot(path=FOLDER / f"{name}.png")
        print(FOLDER / f"{name}.png")


def conversations(api: ConsoleApi) -> str:
    """Fill a server with sessions; the one that the pictures show."""
    for index, title in enumerate(TITLES):
        api.session("/fail half a reply" if index == 1 else f"hello, number {index}", title=title)
    return api.session(
        '/think /tool calc {"expression": "6*7"} What is six times seven?', "/fork Ask the archive", "/ask Go on?",
        title="Six times seven",
    )


def take_all(camera: Photographer, session: str) -> None:
    place = f"sessions/{session}?view=both"
    with camera.window(place) as page:
        expect(page.get_by_role("form", name="The agent asks")).to_be_visible()
        page.locator(".grid-pane").evaluate("(pane) => { pane.scrollTop = 0 }")
        page.locator(".band[data-seq='14'] .cell[data-column=aap] .line").first.hover()
        camera.take(page, "console")
    with camera.window(place, color_scheme="dark") as page:
        page.locator(".grid-pane").evaluate("(pane) => { pane.scrollTop = 0 }")
        page.locator(".band[data-seq='14'] .cell[data-column=cas] .line").first.click()
        page.locator(".table-row").first.click()
        expect(page.locator(".table-lines mark")).to_be_visible()
        camera.take(page, "console-frame")
    with camera.window("mappings") as page:
        expect(page.get_by_role("table").first).to_be_visible()
        camera.take(page, "console-mappings")
    with camera.window(place.replace("both", "talk"), **PHONE) as page:
        expect(page.get_by_role("form", name="The agent asks")).to_be_visible()
        camera.take(page, "console-phone")
    with camera.window(place, locale="zh-CN") as page:
        expect(page.get_by_role("form", name="智能体提问")).to_be_visible()
        camera.take(page, "console-zh")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder, running(Path(folder), dialects=ALL_DIALECTS) as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        take_all(Photographer(browser, server.address), conversations(ConsoleApi(server.address)))
        browser.close()


if __name__ == "__main__":
    main()
