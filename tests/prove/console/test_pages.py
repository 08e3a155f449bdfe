"""Mappings, examinations, the server, keys, languages."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.console_page import PATIENCE, ConsoleApi, ConsolePage, console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import PROGRAM, running

STATIC = Path(__file__).parents[3] / "gateway" / "console" / "static"


def test_every_cell_of_the_grid_has_its_note(console: ConsolePage) -> None:
    page = console.go("mappings").page
    page.get_by_role("button", name=re.compile("^aap, subagents: ")).click()
    expect(page.get_by_role("dialog")).to_contain_text("lost")
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("Agent of cas, client of aap")).click()
    expect(page.get_by_role("dialog", name="cas → aap")).to_contain_text("Lost")


def test_an_event_and_a_frame_are_translated_as_they_are_written(console: ConsolePage) -> None:
    page = console.go("mappings/translate").page
    box = page.get_by_role("textbox", name="Event or frame")
    box.fill(json.dumps({"type": "block.ended", "block_id": "b", "message_id": "m", "kind": "text", "text": "Merhaba"}))
    for dialect in ALL_DIALECTS:
        column = page.locator(".translated section", has=page.get_by_role("heading", name=dialect))
        expect(column).to_contain_text("Merhaba")
    page.get_by_label("Written in").select_option("aap")
    box.fill('event: text_delta\ndata: {"delta":"Selam"}\n\n')
    expect(page.locator(".translated section").first).to_contain_text("Selam")
    box.fill("{")
    expect(page.locator(".translate-in .error-text")).not_to_be_empty()


def test_an_examination_runs_and_its_report_is_read_again_from_a_file(
    console: ConsolePage, api: ConsoleApi, tmp_path: Path,
) -> None:
    page = console.go("examine").page
    page.get_by_label("Dialect").select_option("aap")
    page.get_by_label("Requirements").fill("AAP-META-*")
    page.get_by_role("button", name="Examine", exact=True).click()
    expect(page.locator("report-view")).to_be_visible(timeout=4 * PATIENCE)
    made = api.call("examinations")["examinations"][0]
    report = tmp_path / "report.json"
    report.write_text(json.dumps(api.call(f"examinations/{made['id']}")["report"]))
    console.go("examine")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a file").click()
    chooser.value.set_files(report)
    page.get_by_role("group", name="Outcome").get_by_role("button", name=re.compile("^All")).click()
    page.get_by_role("listbox", name="Requirements").get_by_role("option").first.click()
    expect(page.get_by_role("region", name="Requirement")).to_contain_text("AAP-")


def test_a_recording_that_is_dropped_is_judged(console: ConsolePage, tmp_path: Path) -> None:
    url = f"{console.address}/aap/meta"
    answer = {"status": 200, "headers": [{"name": "Content-Type", "value": "application/json"}],
              "content": {"mimeType": "application/json", "text": '{"version": 3, "agents": []}'}}
    exchange = {"startedDateTime": "2026-11-18T08:00:00Z", "time": 1, "response": answer,
                "request": {"method": "GET", "url": url, "headers": []}}
    file = tmp_path / "exchange.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": [exchange]}}))
    page = console.go("examine").page
    page.get_by_label("Dialect").select_option("aap")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Open a file").click()
    chooser.value.set_files(file)
    expect(page.locator("report-view")).to_be_visible(timeout=4 * PATIENCE)


def test_the_server_shows_addresses_and_figures(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.go("server").page
    for dialect in ALL_DIALECTS:
        expect(page.locator(".cards article", has=page.get_by_role("heading", name=dialect))).to_contain_text("http://")
    expect(page.locator("line-chart polyline").first).to_be_attached(timeout=PATIENCE)
    expect(page.get_by_text("Warnings of the log")).to_be_visible()


def test_a_server_with_keys_asks_for_one_and_keeps_it_for_the_tab(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path, dialects=ALL_DIALECTS, auth="keys", admins=["ann"]) as server:
        made = subprocess.run([*PROGRAM, "keys", "add", "ann", "--config", str(tmp_path / "config.yaml")],
                              capture_output=True, text=True, check=True).stdout
        key = max(re.findall(r"\S{16,}", made), key=len)
        with console_page(browser, server.address) as console:
            page = console.go().page
            dialog = page.get_by_role("dialog", name="This server wants a key")
            dialog.get_by_label("Key").fill("wrong-key")
            dialog.get_by_role("button", name="Use this key").click()
            expect(page.get_by_text("The server refused this key.")).to_be_visible()
            page.get_by_role("dialog").get_by_label("Key").fill(key)
            page.get_by_role("button", name="Use this key").click()
            expect(page.get_by_role("button", name="New session").first).to_be_visible()
            page.reload()
            expect(page.get_by_role("button", name="New session").first).to_be_visible()
            assert key not in page.url
            assert page.evaluate("Object.values(sessionStorage).length") > 0
            assert key not in page.evaluate("JSON.stringify(localStorage)")


@pytest.mark.parametrize(("locale", "query", "word"), [
    ("en-US", "", "Sessions"), ("zh-CN", "", "会话"), ("en-US", "?lang=zh", "会话"), ("zh-CN", "?lang=en", "Sessions"),
])
def test_the_language_is_that_of_the_address_or_of_the_browser(
    browser: Browser, api: ConsoleApi, locale: str, query: str, word: str,
) -> None:
    with console_page(browser, api.address, locale=locale) as console:
        expect(console.go(query=query).page.get_by_role("navigation").get_by_text(word, exact=True)).to_be_visible()


def test_chinese_has_every_word_that_english_has() -> None:
    word = re.compile(r'(?:^|[{,])\s*"?([a-z][\w. ]*)"?: "', re.MULTILINE)
    keys = {name: set(word.findall((STATIC / f"lang-{name}.js").read_text())) for name in ("en", "zh")}
    assert len(keys["en"]) > 200
    assert keys["en"] <= keys["zh"]


def test_a_browser_that_asks_for_the_root_is_led_to_the_console(console: ConsolePage) -> None:
    console.page.goto(console.address)
    expect(console.page.get_by_role("navigation")).to_be_visible()
    assert console.page.url.startswith(f"{console.address}/console")
