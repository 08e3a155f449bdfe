"""The console in a real browser: a session in every dialect, and hostile content; more is in `tests/prove/browser`."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.support.console_page import ConsoleApi, console_page
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import Running, running

HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script> "
    "javascript:alert(1) https://example.com/a\u202etxt.exe <a href=\"javascript:alert(1)\">here</a> \u202ereversed"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("console"), dialects=ALL_DIALECTS) as server:
        yield server


def test_a_session_is_made_and_seen_in_every_dialect_at_once(browser: Browser, server: Running) -> None:
    with console_page(browser, server.address) as console:
        page = console.go().page
        page.get_by_role("button", name="New session").first.click()
        page.get_by_role("dialog").get_by_label("Title").fill("Six times seven")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_role("heading", name="Six times seven")).to_be_visible()
        expect(page.get_by_role("option", name="Six times seven")).to_be_visible()
        console.say('/think /tool calc {"expression": "6*7"} hello')
        expect(console.conversation).to_contain_text("calc returned 42")
        for dialect in ALL_DIALECTS:
            expect(page.locator(f".column-head[data-column={dialect}]")).to_be_visible()
        band = console.band("turn.ended")
        expect(band.locator(".name")).to_have_count(len(ALL_DIALECTS) + 1)
        band.locator(".cell").nth(2).hover()
        expect(page.locator(".band.lit")).to_have_attribute("data-seq", band.get_attribute("data-seq") or "")
        band.locator(".cell[data-column=aap] .line").click()
        expect(page.locator("frame-detail")).to_contain_text("stopReason")
        page.get_by_role("button", name="Raw").click()
        expect(page.locator("frame-detail .raw")).to_contain_text("event: turn_stop")


def test_what_agents_say_is_never_markup(browser: Browser, server: Running) -> None:
    api = ConsoleApi(server.address)
    search = f'/tool search {{"query": "<b onclick=alert(1)>{HOSTILE[:20]}"}}'
    session = api.session(HOSTILE, f"/burst 3 {HOSTILE}", search,
                          title=f"<img src=x onerror=alert(1)> {HOSTILE[-9:]}")
    with console_page(browser, server.address) as console:
        page = console.open(session).page
        console.ended(3)
        expect(page).to_have_title("Dragoman console")
        assert page.locator("conversation-view :is(img, script), session-list img, frame-grid img").count() == 0
        expect(console.conversation.locator("bdi, long-text, .plain").first).to_contain_text("<img src=x onerror")
        links = page.locator("conversation-view a")
        assert {link.get_attribute("href") for link in links.all()} == {"https://example.com/a"}
        assert all("noopener" in (link.get_attribute("rel") or "") for link in links.all())
        refused = page.evaluate("""() => new Promise((done) => {
          document.addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective));
          const script = document.createElement('script');
          script.textContent = 'document.title = "taken"';
          document.body.append(script);
        })""")
        assert refused.startswith("script-src")
        console.complaints.clear()
