"""The page of the console that says who speaks what, and what a move to another dialect would cost."""

import json
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, expect

from tests.support.console_page import console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import running


def test_the_clients_of_each_dialect_and_what_a_move_costs_them(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path, dialects=ALL_DIALECTS) as server, console_page(browser, server.address) as console:
        body = json.dumps({"message": "/think /title <b>Lunch</b>", "userId": "ann", "stream": False}).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "desk/1.4"}
        with urlopen(Request(f"{server.address}/api/v1/chat", body, headers)) as answer:
            assert b'"completed"' in answer.read()
        page = console.go().page
        page.get_by_role("link", name="Clients").click()
        expect(page.get_by_role("heading", name="Who speaks what")).to_be_visible()
        line = page.get_by_role("row", name="desk/1.4")
        expect(line).to_contain_text("thinking")
        line.locator("summary").click()
        expect(line).to_contain_text("POST /api/v1/chat")
        page.get_by_label("If they moved to").select_option("aap")
        expect(line).to_contain_text("✗ titles")
        page.get_by_label("If they moved to").select_option("zenflux")
        expect(line).to_contain_text("speaks it")
        console.go("clients", "?lang=zh")
        expect(page.get_by_role("heading", name="谁在使用哪种协议")).to_be_visible()
        expect(page.get_by_role("row", name="desk/1.4")).to_contain_text("thinking")
