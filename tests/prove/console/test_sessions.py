"""The list of sessions, and what can be done with one."""

from pathlib import Path

from playwright.sync_api import expect

from tests.support.console_page import ConsoleApi, ConsolePage


def test_the_list_is_live_and_can_be_searched_and_filtered(console: ConsolePage, api: ConsoleApi) -> None:
    api.session("/fail x", title="Broken one")
    page = console.go().page
    row = page.get_by_role("option", name="Broken one")
    expect(row).to_contain_text("failed")
    waiting = api.session("/ask x", title="Waiting one")
    expect(page.get_by_role("option", name="Waiting one")).to_contain_text("1 open")
    page.get_by_label("Status").select_option("waiting")
    expect(row).to_have_count(0)
    expect(page.get_by_role("option", name="Waiting one")).to_be_visible()
    page.get_by_label("Status").select_option("")
    page.get_by_label("Search title, text, id").fill("Broken")
    expect(page.get_by_role("option", name="Waiting one")).to_have_count(0)
    expect(row).to_be_visible()
    page.get_by_label("Search title, text, id").fill("")
    api.call(f"sessions/{waiting}", method="DELETE")
    expect(page.get_by_role("option", name="Waiting one")).to_have_count(0)


def test_only_the_rows_in_view_have_elements(console: ConsolePage, api: ConsoleApi) -> None:
    for _ in range(230):
        api.call("sessions", {"agent": "demo"})
    page = console.go().page
    expect(page.get_by_role("option", name="Untitled session").first).to_be_visible()
    page.get_by_role("listbox", name="Sessions").focus()
    for _ in range(20):
        page.keyboard.press("End")
    expect(page.locator(".session.active")).to_be_visible()
    assert page.locator(".session").count() < 60


def test_a_session_is_renamed_exported_imported_and_deleted(
    console: ConsolePage, api: ConsoleApi, tmp_path: Path,
) -> None:
    session = api.session("hello", title="Old name")
    page = console.open(session).page

    def choose(action: str) -> None:
        page.get_by_role("button", name="Actions of this session").click()
        page.get_by_role("menuitem", name=action).click()

    choose("Rename")
    page.get_by_role("dialog").get_by_label("Title").fill("New name")
    page.get_by_role("button", name="OK").click()
    expect(page.get_by_role("heading", name="New name")).to_be_visible()
    with page.expect_download() as lines:
        choose("Export as JSONL")
    assert b"turn.ended" in Path(lines.value.path()).read_bytes()
    with page.expect_download() as packed:
        choose("Export as ZIP")
    packed.value.save_as(tmp_path / "session.zip")
    choose("Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="One conversation, every protocol")).to_be_visible()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import a session").click()
    chooser.value.set_files(tmp_path / "session.zip")
    expect(page.get_by_role("heading", name="New name")).to_be_visible()
    expect(console.conversation).to_contain_text("You said: hello")


def test_a_shared_link_shows_the_session_without_a_composer(console: ConsolePage, api: ConsoleApi) -> None:
    session = api.session("/think shared words", title="For others")
    page = console.open(session).page
    page.get_by_role("button", name="Actions of this session").click()
    page.get_by_role("menuitem", name="Share a link").click()
    link = page.get_by_role("textbox", name="Share a link").input_value()
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_text("Shared session, read only")).to_be_visible()
    expect(console.conversation).to_contain_text("You said: shared words")
    expect(console.composer).to_have_count(0)
    assert page.locator(".band .cell[data-column=aap] .name").count() > 0
