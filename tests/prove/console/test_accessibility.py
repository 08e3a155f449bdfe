"""axe-core, light and dark, wide and narrow; and nothing is wider than the window."""

import os
import shutil
import subprocess

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.console_page import ConsoleApi, console_page

AXE = "axe-core@4"


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, installed with npm."""
    npm = shutil.which("npm")
    if npm is None and "CI" not in os.environ:
        pytest.skip("there is no node here; `make test` installs it where it may")
    assert npm, "there is no npm"
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", AXE], cwd=folder, check=True, timeout=120)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The one session that all tests look at, once it is made."""
    return []


def complaints(page: Page, axe: str) -> list[str]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]


PLACES = [
    "", "SESSION", "SESSION?view=wire&at=30", "mappings", "mappings/translate", "mappings/cas", "examine", "server",
]


@pytest.mark.parametrize("width", [1440, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_stands_in_the_way(
    browser: Browser, api: ConsoleApi, axe: str, session: list[str], scheme: str, width: int,
) -> None:
    if not session:
        session.append(api.session("/think /tool clock /image /plan hello", "/fork x", "/ask y", title="For everybody"))
    size = {"width": width, "height": 900}
    with console_page(browser, api.address, viewport=size, color_scheme=scheme, reduced_motion="reduce") as console:
        for place in PLACES:
            page = console.go(place.replace("SESSION", f"sessions/{session[0]}")).page
            expect(page.get_by_role("heading").first).to_be_visible()
            page.wait_for_load_state("load")
            assert complaints(page, axe) == [], place
            assert page.evaluate("document.documentElement.scrollWidth") <= width, place


@pytest.mark.parametrize("width", [360, 768, 1280, 3840])
def test_the_page_fits_every_window(browser: Browser, api: ConsoleApi, session: list[str], width: int) -> None:
    if not session:
        session.append(api.session("hello", title="For everybody"))
    with console_page(browser, api.address, viewport={"width": width, "height": 900}) as console:
        page = console.open(session[0], "both").page
        for part in ("session-page h1", ".composer-bar .primary", "time-bar .live"):
            box = page.locator(part).bounding_box()
            assert box, part
            assert box["x"] >= 0, part
            assert box["x"] + box["width"] <= width, part
