"""`make docs` builds the site; a broken link is reported; a browser searches it."""

import functools
import subprocess
import sys
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from docs.build_site import ROOT, broken_links
from tests.browser.conftest import browser as browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "mkdocs>=1.6"], check=True)
    done = subprocess.run([python, ROOT / "docs" / "build_site.py", "--out", folder / "site"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_link_that_leads_nowhere_is_reported(site: Path, tmp_path: Path) -> None:
    assert broken_links(site) == []
    page = site / "docs" / "why" / "index.html"
    text = page.read_text()
    try:
        page.write_text(text.replace("</body>", '<a href="../nowhere/">x</a><a href="../cas/#nothing">y</a></body>'))
        assert broken_links(site) == [
            "docs/why/index.html links to ../nowhere/", "docs/why/index.html links to ../cas/#nothing"]
    finally:
        page.write_text(text)


def test_a_page_is_found_by_its_words(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/docs/why/?q=shadow")
    page.wait_for_selector("#mkdocs-search-results article", state="attached", timeout=60_000)
    assert "Moving clients" in (page.text_content("#mkdocs-search-results") or "")
