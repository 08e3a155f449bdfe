"""The protocols side by side, and the log at any of its records."""

from itertools import pairwise

from playwright.sync_api import Page, expect

from tests.support.console_page import PATIENCE, ConsoleApi, ConsolePage
from tests.support.dialect_tables import ALL_DIALECTS


def columns(page: Page) -> list[str]:
    return [head.get_attribute("data-column") or "" for head in page.locator(".column-head").all()]


def choose(page: Page, column: str, action: str, role: str = "menuitem") -> None:
    page.get_by_role("button", name=f"Column {column}").click()
    page.locator(".menu").get_by_role(role, name=action, exact=True).click()  # type: ignore[arg-type]


def test_columns_are_hidden_moved_and_filtered(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("/think hello"), "wire").page
    first, second = list(ALL_DIALECTS)[:2]
    before = columns(page)
    assert set(before) == {"records", *ALL_DIALECTS}
    choose(page, before[1], "Hide")
    assert before[1] not in columns(page)
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name=before[1]).click()
    expect(page.locator(f".column-head[data-column={before[1]}]")).to_be_visible()
    choose(page, before[2], "Move left")
    assert columns(page)[1:3] == [before[2], before[1]]
    choose(page, "canonical", "turn.ended", "menuitemcheckbox")
    expect(page.locator(".band")).to_have_count(1)
    choose(page, "canonical", "All events", "menuitemcheckbox")
    page.get_by_label("Search in frames").fill("You said")
    expect(page.locator(".band").first).to_contain_text("block.")
    assert first != second
    page.reload()
    expect(page.locator(".column-head").nth(1)).to_have_attribute("data-column", before[2])


def test_a_silent_dialect_says_why_and_names_its_row(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("/fork deep"), "wire").page
    page.get_by_label("Search in frames").fill("scope.opened")
    cell = console.band("scope.opened").locator(".cell[data-column=aap]")
    expect(cell).to_contain_text("dropped:")
    cell.locator(".line").click()
    page.locator("frame-detail .table-row").click()
    expect(page.locator(".table-lines mark")).to_contain_text("scope.opened")
    page.locator(".table-lines a").click()
    expect(page.locator(".source .chosen")).to_contain_text("scope.opened")


def test_ten_thousand_rows_are_scrolled_with_few_elements(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("/burst 10000 x"), "wire").page
    expect(page.locator(".column-head[data-column=records] .tally")).to_contain_text("10,0", timeout=4 * PATIENCE)
    seen = set()
    for part in range(0, 101, 10):
        page.locator(".grid-pane").evaluate("(pane, at) => { pane.scrollTop = pane.scrollHeight * at / 100 }", part)
        expect(page.locator(".band").first).to_be_visible()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        numbers = sorted(page.evaluate("[...document.querySelectorAll('.band')].map((it) => Number(it.dataset.seq))"))
        assert len(numbers) < 120
        assert all(later == earlier + 1 for earlier, later in pairwise(numbers))
        seen.add(numbers[0])
    assert len(seen) == 11


def test_the_log_is_replayed_forwards_and_backwards(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("one", "two"), "both").page
    console.ended(2)
    slider = page.get_by_role("slider", name="Position in the log")
    slider.focus()
    page.keyboard.press("Home")
    expect(console.conversation).to_contain_text("Nothing was said yet")
    expect(page.locator(".band")).to_have_count(0)
    page.get_by_label("Speed").select_option("20")
    page.get_by_role("button", name="Play", exact=True).click()
    console.ended(2)
    page.get_by_role("button", name="Play backwards").click()
    console.ended(0)
    page.get_by_role("button", name="Live").click()
    console.ended(2)


def test_the_ask_of_the_past_cannot_be_answered(console: ConsolePage, api: ConsoleApi) -> None:
    session = api.session("/continue x")
    asked = api.open_ask(session)
    api.command(session, kind="continue_turn", request_id=asked["request_id"], proceed=True)
    api.wait(session)
    page = console.open(session, "talk", at=asked["seq"]).page
    expect(page.locator(".ask.settled")).to_contain_text("open at this point")


def test_a_client_of_each_dialect_is_told_how_to_reconnect_here(console: ConsolePage, api: ConsoleApi) -> None:
    page = console.open(api.session("hello"), "both").page
    console.ended()
    page.get_by_role("button", name="One record back").click()
    page.get_by_role("button", name="Reconnect here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="This exchange as curl")).to_be_visible()
    for dialect in ALL_DIALECTS:
        expect(dialog.get_by_role("heading", name=dialect).last).to_be_visible()
    expect(dialog.locator("pre", has_text="curl").first).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    dialog.get_by_role("button", name="Copy").first.click()
    assert "hello" in page.evaluate("navigator.clipboard.readText()")
