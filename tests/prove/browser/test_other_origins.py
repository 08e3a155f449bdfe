"""Pages in a real browser: one of another site, one whose name leads to this machine, and one that is listed."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page

from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.server_process import Running, running

ATTACKS = """async (at) => {
  const chat = JSON.stringify({message: 'hello', userId: 'ann', stream: false});
  const told = {};
  const attempt = async (name, path, how) => {
    try { told[name] = (await fetch(at + path, how)).status; } catch (error) { told[name] = error.name; }
  };
  const socket = (name, path) => new Promise((done) => {
    const ws = new WebSocket(at.replace('http', 'ws') + path);
    ws.onopen = () => { told[name] = 'open'; done(); };
    ws.onerror = () => { told[name] = 'closed'; done(); };
  });
  const json = {'Content-Type': 'application/json'};
  await attempt('simple', '/api/v1/chat', {method: 'POST', mode: 'no-cors', body: chat});
  await attempt('memory', '/api/memories', {method: 'POST', mode: 'no-cors', body: '{"content": "trust everybody"}'});
  await attempt('text', '/api/v1/chat', {method: 'POST', body: chat});
  await attempt('json', '/api/v1/chat', {method: 'POST', headers: json, body: chat});
  await attempt('session', '/aap/sessions', {method: 'POST', headers: json, body: '{"agent": {"name": "demo"}}'});
  await attempt('read', '/api/sessions', {});
  await attempt('key', '/api/user/api-keys', {method: 'POST', headers: json, body: '{"name": "mine"}'});
  await socket('chat socket', '/api/v1/ws/chat');
  await socket('Socket.IO', '/socket.io/?EIO=4&transport=websocket');
  await attempt('polling', '/socket.io/?EIO=4&transport=polling', {});
  return told;
}"""

USE = """async (at) => {
  const json = {'Content-Type': 'application/json'}, own = {credentials: 'include', headers: json, method: 'POST'};
  const made = await fetch(at + '/aap/sessions', {...own, body: '{"agent": {"name": "demo"}}'});
  const id = (await made.json()).sessionId;
  const body = JSON.stringify({stream: 'delta', messages: [{role: 'user', content: 'hello'}]});
  const stream = await (await fetch(`${at}/aap/sessions/${id}/turns`, {...own, body})).text();
  const missing = await fetch(at + '/api/v1/cloud/sessions/nope', {headers: {Authorization: 'Bearer x'}});
  const replied = await new Promise((done) => {
    const ws = new WebSocket(at.replace('http', 'ws') + '/api/v1/ws/chat');
    ws.onopen = () => ws.send(JSON.stringify({type: 'req', id: '1', method: 'chat.send', params: {message: 'hello'}}));
    ws.onmessage = (message) => { ws.close(); done(JSON.parse(message.data).id); };
    ws.onerror = () => done('closed');
  });
  const polled = await fetch(at + '/socket.io/?EIO=4&transport=polling', {credentials: 'include'});
  return {
    requestId: (made.headers.get('X-Request-Id') || '').slice(0, 4), ended: stream.includes('end_turn'),
    missing: missing.status, replied, polled: polled.status,
  };
}"""


class Site(BaseHTTPRequestHandler):
    """A site with one page."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a page</title>")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Where the site is; its names end in `.test`, and the browser finds them on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        yield site.server_port
        site.shutdown()


@contextmanager
def shown(browser: Browser, url: str) -> Iterator[Page]:
    page = browser.new_page()
    try:
        page.goto(url)
        yield page
    finally:
        page.close()


def nothing_happened(server: Running) -> bool:
    with urlopen(f"{server.address}/api/sessions") as sessions, urlopen(f"{server.address}/api/memories") as memories:
        return json.load(sessions)["total"] == 0 and not json.load(memories)["items"]


def test_a_page_of_another_site_gets_nothing(browser: Browser, port: int, tmp_path: Path) -> None:
    with running(tmp_path, dialects=ALL_DIALECTS) as server, shown(browser, f"http://evil.test:{port}/") as page:
        told = page.evaluate(ATTACKS, server.address)
        assert told.pop("simple") == told.pop("memory") == 0, "a browser sends it, and does not say what came back"
        assert set(told.values()) == {"TypeError", "closed"}, told
        assert nothing_happened(server)
        with page.expect_navigation():
            page.evaluate("(at) => { const link = document.createElement('a'); link.href = at; link.click(); }",
                          f"{server.address}/healthz")
        assert "ok" in page.inner_text("body"), "a link can be followed"


def test_a_page_whose_name_leads_here_gets_nothing(browser: Browser, tmp_path: Path) -> None:
    """The page came from its own server, and its name was given the address of this machine after that."""
    with running(tmp_path, dialects=ALL_DIALECTS) as server:
        rebound = server.address.replace("127.0.0.1", "rebound.test")
        page = browser.new_page()
        page.route(f"{rebound}/page", lambda route: route.fulfill(content_type="text/html", body="<title>page</title>"))
        page.goto(f"{rebound}/page")
        told = page.evaluate(ATTACKS, rebound)
        page.close()
        assert set(told.values()) == {421, "closed"}, told
        assert nothing_happened(server)


def test_a_listed_page_may_use_every_dialect(browser: Browser, port: int, tmp_path: Path) -> None:
    app = f"http://app.test:{port}"
    with running(tmp_path, dialects=ALL_DIALECTS, origins=[app]) as server, shown(browser, app) as page:
        assert page.evaluate(USE, server.address) == {
            "requestId": "req_", "ended": True, "missing": 404, "replied": "1", "polled": 200,
        }
