"""The console's page in a real browser, and what another client does to its sessions meanwhile."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Browser, Locator, Page, expect

PATIENCE = 30_000
"""Milliseconds that only a page that hangs would need."""
Open = Callable[..., "ConsolePage"]


class ConsoleApi:
    """A script that uses the console's API beside the page."""

    def __init__(self, address: str, key: str = "") -> None:
        self.address = address
        self.key = key

    def call(self, path: str, body: object = None, method: str | None = None) -> Any:
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"{self.address}/console/api/{path}", data, headers, method=method)) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def session(self, *messages: str, **settings: object) -> str:
        """The id of a new session in which these messages were sent, one after the other."""
        made = str(self.call("sessions", {"agent": "demo", **settings})["session_id"])
        for message in messages:
            self.say(made, message)
        return made

    def say(self, session: str, message: str) -> None:
        """Send a message, and wait until its turn waits for somebody or has ended."""
        self.command(session, kind="send_message", content=message)
        self.wait(session)

    def wait(self, session: str) -> None:
        after = 0
        while True:
            page = self.call(f"sessions/{session}/records?after={after}&limit=2000")
            names = [record["name"] for record in page["records"]]
            after = page["records"][-1]["seq"] if page["records"] else after
            if page["next"] is None and names and names[-1] in ("turn.ended", "turn.suspended"):
                return

    def command(self, session: str, **command: object) -> Any:
        return self.call(f"sessions/{session}/commands", {"commands": [command]})

    def open_ask(self, session: str) -> dict[str, Any]:
        ask: dict[str, Any] = self.call(f"sessions/{session}")["open_asks"][0]
        return ask


class ConsolePage:
    """The page, with names for the parts that tests use."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text)
                if "Content Security Policy" in message.text else None)

    def go(self, place: str = "", query: str = "") -> "ConsolePage":
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/console{query}#/{place}")
        return self

    def open(self, session: str, view: str = "both", **settings: object) -> "ConsolePage":
        more = "".join(f"&{name}={value}" for name, value in settings.items())
        self.go(f"sessions/{session}?view={view}{more}")
        expect(self.page.locator("session-page h1")).to_be_visible()
        return self

    @property
    def conversation(self) -> Locator:
        return self.page.locator("conversation-view")

    @property
    def composer(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message to the agent")

    def say(self, text: str) -> None:
        self.composer.fill(text)
        self.composer.press("Enter")

    def band(self, text: str) -> Locator:
        """The rows of the record whose canonical cell has this text."""
        return self.page.locator(".band", has=self.page.locator(".cell[data-column=records]", has_text=text))

    def ended(self, turns: int = 1) -> None:
        """Wait until the conversation shows so many turns as ended."""
        expect(self.page.locator(".item.turn")).to_have_count(turns, timeout=PATIENCE)


@contextmanager
def console_page(browser: Browser, address: str, **context: Any) -> Iterator[ConsolePage]:
    """A page in a browser of its own: no storage is shared. Errors of the page fail the test."""
    made = browser.new_context(**{"viewport": {"width": 1500, "height": 900}, "locale": "en-US", **context})
    try:
        page = ConsolePage(made.new_page(), address)
        yield page
        assert page.complaints == []
    finally:
        made.close()
