"""A real browser: Debian's Chromium, driven by Playwright, with no way out into the network."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--host-resolver-rules=MAP *.test 127.0.0.1",
    "--disable-features=LocalNetworkAccessChecks",  # other browsers have none: the server must refuse by itself
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Playwright holds the thread's event loop, so that it must not outlive the module."""
    if CHROMIUM is None:
        why = "there is no Chromium here; `make test` installs it on Debian where it may"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()
