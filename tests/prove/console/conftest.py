"""One server with the demo agent for all tests of the console, and a page for each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import browser as browser
from tests.support.console_page import ConsoleApi, ConsolePage, console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("console"), dialects=ALL_DIALECTS) as server:
        yield server


@pytest.fixture
def api(server: Running) -> ConsoleApi:
    return ConsoleApi(server.address)


@pytest.fixture
def console(browser: Browser, server: Running) -> Iterator[ConsolePage]:
    with console_page(browser, server.address, accept_downloads=True) as page:
        yield page
