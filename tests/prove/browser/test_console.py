"""The console as people use it: asks, a cut line, the keyboard; `tests/browser` has the rest."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.console_page import PATIENCE, ConsoleApi, console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("console"), dialects=ALL_DIALECTS) as server:
        yield server


def test_asks_are_answered_in_place_and_vanish_when_another_client_answers(browser: Browser, server: Running) -> None:
    api = ConsoleApi(server.address)
    session = api.session("/ask one")
    with console_page(browser, server.address) as console, console_page(browser, server.address) as other:
        page = console.open(session, "talk").page
        other.open(session, "talk")
        form = page.get_by_role("form", name="The agent asks")
        form.get_by_role("button", name="Answer").click()
        expect(form.get_by_role("alert")).to_contain_text("Which colour")
        form.get_by_label("Green").check()
        form.get_by_label("Own words for: Which fruits").fill("a pear")
        expect(other.page.get_by_role("form", name="The agent asks")).to_be_visible()
        form.get_by_role("button", name="Answer").click()
        console.ended()
        expect(console.conversation).to_contain_text("a pear")
        other.ended()
        expect(other.page.get_by_role("form", name="The agent asks")).to_have_count(0)
        console.say("/permit two")
        asked = page.get_by_role("form", name="May the agent do this?")
        asked.get_by_label("Reason").fill("I was about to say")
        ask = api.open_ask(session)
        api.command(session, kind="decide_permission", request_id=ask["request_id"], granted=True)
        expect(asked).to_have_count(0)
        console.ended(2)


def test_the_page_goes_on_where_it_was_after_the_server_was_killed(browser: Browser, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with console_page(browser, f"http://127.0.0.1:{port}") as console:
        with running(tmp_path, dialects=ALL_DIALECTS, port=port) as server:
            session = ConsoleApi(server.address).session("one")
            page = console.open(session).page
            console.ended()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        head = (page.locator(".where").text_content() or "").split(" ")[0]
        with running(tmp_path, dialects=ALL_DIALECTS, port=port) as server:
            said = page.get_by_text(f"Connected again: resumed after record {head}")
            expect(said).to_be_visible(timeout=PATIENCE)
            ConsoleApi(server.address).say(session, "two")
            console.ended(2)
            rows = page.locator(".column-head[data-column=records] .tally").text_content()
            assert page.evaluate("document.querySelector('session-page').log.bands.every((band) => band.record)"), rows


def test_the_keyboard_is_enough(browser: Browser, server: Running) -> None:
    session = ConsoleApi(server.address).session("/think hello", title="By keyboard")
    with console_page(browser, server.address) as console:
        page = console.go().page
        expect(page.get_by_role("option", name="By keyboard")).to_be_visible()
        page.keyboard.press("l")
        page.keyboard.press("End")
        page.keyboard.press("Home")
        expect(page.locator(".session.active")).to_have_id(f"session-{session}")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="By keyboard")).to_be_focused()
        page.keyboard.press("p")
        expect(page.get_by_role("grid")).to_be_focused()
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator("frame-detail")).to_contain_text("Record 1")
        page.keyboard.press("Tab")
        page.locator("frame-detail [role=tab][aria-selected=true]").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Escape")
        expect(page.locator("frame-detail")).to_be_hidden()
        expect(page.get_by_role("grid")).to_be_focused()
        page.keyboard.press("c")
        page.keyboard.type("by hand")
        page.keyboard.press("Enter")
        console.ended(2)
        page.keyboard.press("Escape")
        page.keyboard.press(",")
        expect(page.get_by_role("button", name="Live")).to_have_attribute("aria-pressed", "false")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
