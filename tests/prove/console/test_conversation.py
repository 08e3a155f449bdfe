"""What people see of a conversation, and what they do in it."""

import pytest
from playwright.sync_api import Browser, expect

from tests.support.console_page import PATIENCE, ConsoleApi, ConsolePage, console_page
from tests.support.server_process import Running

TOOL = {"name": "read_sensor", "description": "Reads a sensor.", "parameters": {
    "type": "object", "required": ["sensor"], "properties": {"sensor": {"type": "string", "enum": ["door", "window"]}}}}


def test_everything_an_agent_can_say_is_shown(console: ConsolePage, api: ConsoleApi) -> None:
    said = "/think /tool calc {\"expression\": \"6*7\"} /image /plan /annotate words"
    page = console.open(api.session(said, "/fork dig", "/ui card"), "talk").page
    console.ended(3)
    thought = console.conversation.locator(".block.thinking details").first
    assert not thought.evaluate("(it) => it.open"), "thinking is folded"
    call = console.conversation.locator(".tool", has_text="Calculator").first
    call.locator("summary").first.click()
    expect(call.locator("json-tree").first).to_contain_text("6*7")
    expect(call).to_contain_text("42")
    assert console.conversation.locator("img.picture").evaluate("(it) => it.naturalWidth") > 0
    expect(console.conversation.locator(".plan li")).not_to_have_count(0)
    expect(console.conversation.locator(".annotation").first).to_be_visible()
    expect(console.conversation.locator(".item.depth-1").first).to_be_visible()
    expect(console.conversation.locator(".item.turn").first).to_contain_text("tokens")
    card = page.locator(".card iframe")
    expect(card).to_have_attribute("sandbox", "allow-scripts")
    expect(page.frame_locator(".card iframe").locator("body")).not_to_be_empty()


def test_text_streams_and_can_be_stopped(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session(), "talk").page
    console.say("/slow 2000 never")
    expect(console.conversation.locator(".block.text.growing")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(console.conversation.locator(".item.turn .outcome.interrupted")).to_be_visible()


def test_the_palette_offers_directives(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session(), "talk").page
    console.composer.press_sequentially("/thi")
    expect(page.get_by_role("option", name="/think")).to_be_visible()
    console.composer.press("Enter")
    assert console.composer.input_value() == "/think "
    console.composer.press_sequentially("now")
    console.composer.press("Enter")
    console.ended()
    expect(console.conversation.locator(".block.thinking")).to_be_visible()


def test_files_are_sent(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session(), "talk").page
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files([{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"some notes"}])
    expect(page.get_by_role("list", name="Attached files")).to_contain_text("notes.txt")
    console.say("look")
    console.ended()
    expect(console.conversation.locator(".item.user .attachment")).to_contain_text("notes.txt")


@pytest.mark.parametrize(("directive", "form", "button", "outcome"), [
    ("/permit", "May the agent do this?", "Allow", "allowed"),
    ("/permit", "May the agent do this?", "Deny", "denied"),
    ("/continue", "Shall the agent go on?", "Go on", "answered"),
    ("/rollback", "Roll back?", "Roll back", "answered"),
])
def test_an_ask_is_answered_in_place(
    console: ConsolePage, api: ConsoleApi, directive: str, form: str, button: str, outcome: str,
) -> None:
    page = console.open(api.session(f"{directive} x"), "talk").page
    page.get_by_role("form", name=form).get_by_role("button", name=button, exact=True).click()
    console.ended()
    expect(console.conversation.locator(".ask.settled")).to_contain_text(outcome)


def test_a_tool_of_the_client_is_carried_out_by_hand(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("/client-tool x", client_tools=[TOOL]), "talk").page
    form = page.get_by_role("form", name="The agent calls your tool")
    expect(form).to_contain_text("read_sensor")
    form.get_by_role("textbox", name="Result").fill("The door is shut.")
    form.get_by_role("button", name="Return the result").click()
    console.ended()
    expect(console.conversation).to_contain_text("The door is shut.")


def test_two_pages_and_a_script_share_a_session(browser: Browser, server: Running, api: ConsoleApi) -> None:
    session = api.session()
    with console_page(browser, server.address) as one, console_page(browser, server.address) as other:
        one.open(session, "talk")
        other.open(session, "talk")
        for turn, speak in enumerate((one.say, other.say, lambda text: api.say(session, text)), start=1):
            speak(f"number {turn}")
            for console in (one, other):
                console.ended(turn)
                expect(console.conversation).to_contain_text(f"You said: number {turn}")


def test_ten_megabytes_of_text_do_not_stop_the_page(console: ConsolePage, api: ConsoleApi) -> None:
    session = api.session("a" * 9_500_000)
    page = console.open(session, "talk").page
    expect(page.locator(".item.turn")).to_have_count(1, timeout=4 * PATIENCE)
    assert page.evaluate("document.querySelector('conversation-view').textContent.length") < 100_000
    page.get_by_role("button", name="Show more").first.click()
    expect(console.composer).to_be_enabled()
