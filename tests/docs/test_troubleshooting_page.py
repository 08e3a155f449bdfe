"""The program prints every message that docs/troubleshooting.md quotes: it is brought about and compared."""

import http.server
import logging
import re
import socket
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import structlog
from typer.testing import CliRunner

from gateway.cli import app
from gateway.storage import create_database
from gateway.storage.sqlite.connection import lock_database
from tests.support.doc_pages import ROOT, Page
from tests.support.gateway_server import Served, serving

PAGE = Page(ROOT / "docs" / "troubleshooting.md")
GOOD = "dialects: {aap: }\nagents: {demo: {backend: demo}}\n"
NOBODY = "http://127.0.0.1:9"
"""An address at which no server listens."""


def quoted() -> list[str]:
    """The messages in the first column of the page's tables."""
    cells = re.findall(r"^\| (?:`` (.+?) ``|`([^`]+)`) \| ", PAGE.text, re.MULTILINE)
    return [double or single for double, single in cells]


def is_printed(message: str, output: str) -> bool:
    """Whether the output has the message; `…` stands for anything within a line."""
    return re.search(".*".join(map(re.escape, message.split("…"))), output) is not None


# -- brought about at the command line --------------------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the user stands, with good settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "config.yaml").write_text(GOOD)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield tmp_path
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


def run(*words: str, said: str = "") -> str:
    result = CliRunner().invoke(app, list(words), input=said)
    assert result.exit_code in (0, 2), result.output
    return result.output


def with_settings(text: str, *words: str) -> Callable[[Path], str]:
    def act(folder: Path) -> str:
        (folder / "config.yaml").write_text(text)
        return run(*words)
    return act


def command(*words: str, said: str = "") -> Callable[[Path], str]:
    return lambda folder: run(*words, said=said)


def agent(settings: str) -> Callable[[Path], str]:
    return with_settings(f"dialects: {{aap: }}\nagents: {{one: {{{settings}}}}}\n", "check")


def port_in_use(folder: Path) -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return run("serve", "--port", str(taken.getsockname()[1]))


def no_settings(folder: Path) -> str:
    (folder / "config.yaml").unlink()
    return port_in_use(folder)


def second_server(folder: Path) -> str:
    (folder / "data").mkdir()
    with lock_database(folder / "data" / "dragoman.db"):
        return run("serve", "--port", "0")


def data_below_a_file(folder: Path) -> str:
    return run("serve", "--port", "0", "--data", str(folder / "config.yaml" / "data"))


def strange_database(folder: Path) -> str:
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("CREATE TABLE cakes (name TEXT)")
    other.close()
    (folder / "config.yaml").write_text(f"{GOOD}log: 'sqlite:{folder}/other.db'\n")
    return run("log", "verify")


def no_sessions(folder: Path) -> str:
    (folder / "data").mkdir()
    create_database(folder / "data" / "dragoman.db")
    return run("sessions")


def answered(status: int, body: bytes, *words: str) -> Callable[[Path], str]:
    """Chat with a server that answers everything with this status."""
    def act(folder: Path) -> str:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                url = f"http://127.0.0.1:{server.server_port}/here"
                return run("chat", url, "--dialect", "aap", *words, said="hello\n")
            finally:
                server.shutdown()
    return act


def with_variable(name: str, value: str) -> Callable[[Path], str]:
    """Look at a server on the internet, with a variable in the environment."""
    def act(folder: Path) -> str:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("HTTPS_PROXY", NOBODY)
            environment.setenv(name, value)
            return run("sessions", "https://api.example.com", "--dialect", "aap")
    return act


AT_THE_COMMAND_LINE: dict[str, Callable[[Path], str]] = {
    "… cannot be reached through the proxy … (…)…": with_variable("HTTPS_PROXY", NOBODY),
    "HTTPS_PROXY is not the address of a proxy: …": with_variable("HTTPS_PROXY", "socks5://127.0.0.1:9"),
    "SSL_CERT_FILE: there is no file …": with_variable("SSL_CERT_FILE", "/nowhere.pem"),
    "there is no such file; name another with --config": command("check", "--config", "nowhere.yaml"),
    "not YAML: …": with_settings("dialects:\n  aap:\n agents:\n", "check"),
    "there is no setting 'hots'; did you mean 'hosts'?": with_settings(f"hots: x\n{GOOD}", "check"),
    "there is no dialect 'app'; did you mean 'aap'?":
        with_settings("dialects: {app: }\nagents: {a: {backend: demo}}\n", "check"),
    "there is no backend 'demmo'; did you mean 'demo'?": agent("backend: demmo"),
    "'dialects' names nothing to serve; …": with_settings("dialects: {}\nagents: {a: {backend: demo}}\n", "check"),
    "'/x' is where 'aap' is mounted already": with_settings(
        "dialects: {aap: {mount: /x}, cas: {mount: /x}}\nagents: {a: {backend: demo}}\n", "check"),
    "auth: none is for this machine only, but on host '0.0.0.0' others could use the agents; …":
        command("serve", "--host", "0.0.0.0", "--port", "0"),
    "auth: oidc needs to know who signs the tokens; …": with_settings(f"{GOOD}auth: oidc\n", "check"),
    "the environment has no variable NO_SUCH_KEY": agent("backend: openai, settings: {key: $NO_SUCH_KEY, model: x}"),
    "no module named 'parrot' beside the settings or among the installed":
        agent("backend: python, settings: {agent: 'parrot:reply'}"),
    "there is no program 'no-such-agent' on the PATH; install it, or write its path":
        agent("backend: acp, settings: {command: no-such-agent}"),
    "There is no config.yaml here: the demo agent is served. …": no_settings,
    "cannot listen on …: the port is in use; …": port_in_use,
    "cannot listen on …: this machine does not have that address; …":
        with_settings(f"{GOOD}auth: keys\nhost: 192.0.2.1\n", "serve", "--port", "0"),
    "… is in use by another server; stop that one, or name another file in `log:` …": second_server,
    "the data folder … cannot be made: …": data_below_a_file,
    "log: Redis at … cannot be reached: …":
        with_settings(f"{GOOD}log: 'redis://127.0.0.1:9/0'\n", "serve", "--port", "0"),
    "… is a database, but not one of ours; name another file in `log:`": strange_database,
    "… cannot be reached (…); is it running, and is that its address?":
        command("chat", f"{NOBODY}/aap", said="hello\n"),
    "'…' is not an http or https address; write it as http://HOST:PORT/PATH": command("chat", "127.0.0.1:9"),
    "name the dialect of the server with --dialect; there are: …": command("chat", f"{NOBODY}/x"),
    "…; is aap at this address? Dragoman has it at …": answered(404, b"nothing here"),
    "…; give a key that the server knows with --key or in DRAGOMAN_KEY": answered(401, b'{"error": "who is there?"}'),
    "…; the key is wrong: give one that the server knows with --key or in DRAGOMAN_KEY":
        answered(401, b'{"error": "unknown key"}', "--key", "strange-key"),
    "There are no sessions.": no_sessions,
    "… cannot be reached: …; is it running (`dragoman serve`), or is it elsewhere (--url)?":
        command("replay", "sess_1", "--url", NOBODY),
    "…: there is no such file; is this the right data folder?": command("log", "verify"),
    "the settings say `log: memory`: there is no file to work on; …":
        with_settings(f"{GOOD}log: memory\n", "log", "verify"),
    "… exists already; remove it, or choose another name":
        command("translate", "--from", "aap", "--to", "cas", "--out", "config.yaml"),
    "There are no keys. Make one with: dragoman keys add NAME": command("keys", "list"),
    "… cannot be reached: …; is it running, and is that its address?": command("conform", "aap", f"{NOBODY}/aap"),
    "there is no suite for 'app'; there is one for: …": command("conform", "app", f"{NOBODY}/aap"),
    "nowhere.yaml: cannot be read: …": command("conform", "aap", f"{NOBODY}/aap", "--profile", "nowhere.yaml"),
    "line 1: this is none of server-sent events, JSON frames (one a line), packets of Socket.IO, …":
        command("translate", "--from", "aap", "--to", "cas", said="hello\n"),
    "there is no dialect 'nova' to translate from; there are: …":
        command("translate", "--from", "nova", "--to", "cas", said="hello\n"),
}


@pytest.mark.parametrize("message", AT_THE_COMMAND_LINE)
def test_the_command_line_prints_it(message: str, folder: Path) -> None:
    output = AT_THE_COMMAND_LINE[message](folder)
    assert is_printed(message, output), output


# -- brought about by a request ---------------------------------------------------------------------------------------

Act = Callable[[Served], Awaitable[tuple[int, str]]]
AAP_SESSION = {"agent": {"name": "demo"}}
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


async def post(served: Served, path: str, body: Any, **headers: str) -> tuple[int, str]:
    sent = {"data": body} if isinstance(body, bytes) else {"json": body}
    async with served.http.post(served.url(path), headers=headers, **sent) as response:
        return response.status, await response.text()


def posting(path: str, body: Any, **headers: str) -> Act:
    return lambda served: post(served, path, body, **headers)


async def aap_session(served: Served) -> str:
    async with served.http.post(served.url("/aap/sessions"), json=AAP_SESSION) as response:
        return str((await response.json())["sessionId"])


async def busy_aap(served: Served) -> tuple[int, str]:
    turns = f"/aap/sessions/{await aap_session(served)}/turns"
    slow = {"stream": "delta", "messages": [{"role": "user", "content": "/slow 100"}]}
    async with served.http.post(served.url(turns), json=slow):
        return await post(served, turns, HELLO)


async def busy_cas(served: Served) -> tuple[int, str]:
    session = await aap_session(served)
    slow = {"stream": "delta", "messages": [{"role": "user", "content": "/slow 100"}]}
    async with served.http.post(served.url(f"/aap/sessions/{session}/turns"), json=slow):
        events = {"events": [{"type": "user.message", "content": "hello"}]}
        return await post(served, f"/api/v1/cloud/sessions/{session}/events", events)


async def twice(served: Served) -> tuple[int, str]:
    await post(served, "/aap/sessions", AAP_SESSION, Authorization="Bearer x")
    return await post(served, "/aap/sessions", AAP_SESSION, Authorization="Bearer x")


async def other_origin(served: Served) -> tuple[int, str]:
    headers = {"Origin": "https://elsewhere.example", "Upgrade": "websocket", "Connection": "Upgrade",
               "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    async with served.http.get(served.url("/api/v1/ws/chat"), headers=headers) as response:
        return response.status, await response.text()


async def reading_metrics(served: Served) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {await served.gateway.keys.add('ann')}"}
    async with served.http.get(served.url("/metrics"), headers=headers) as response:
        return response.status, await response.text()


async def raising_agent(served: Served) -> tuple[int, str]:
    return await post(served, "/api/v1/chat", {"message": "hello", "userId": "ann", "stream": False})


BY_REQUEST: dict[str, tuple[dict[str, Any], Act]] = {
    "a key is required: send the header 'Authorization: Bearer <key>'":
        ({"auth": "keys"}, posting("/aap/sessions", AAP_SESSION)),
    "only admins may do this: list the user '…' under …": ({"auth": "keys"}, reading_metrics),
    "unknown key": ({"auth": "keys"}, posting("/aap/sessions", AAP_SESSION, Authorization="Bearer nobody's")),
    "there is no agent 'nobody'": ({}, posting("/aap/sessions", {"agent": {"name": "nobody"}})),
    "there is no session '…'": ({}, posting("/aap/sessions/sess_0/turns", HELLO)),
    "there is no conversation '…'":
        ({"dialects": {"zenflux": {}}}, posting("/api/v1/chat", {"message": "hello", "conversationId": "nope"})),
    "…: is required": ({}, posting("/aap/sessions", {})),
    "…: must be …, not …": ({}, posting("/aap/sessions", {"agent": 7})),
    "…: '10.0.0.1' is not a public address; …": ({}, posting("/aap/sessions", {
        **AAP_SESSION, "messages": [{"role": "user", "content": [{"type": "image", "url": "https://10.0.0.1/"}]}]})),
    "…: … does not fit into 64 bits; write it as a string": ({}, posting("/aap/sessions", b'{"a":[%d]}' % (2 ** 64))),
    "has more than 40000 items, arrays and objects; send it in several parts":
        ({}, posting("/aap/sessions", b'{"a":[' + b"0," * 40_001 + b"0]}")),
    "…: nested … levels deep; at most 150 levels are possible":
        ({}, posting("/aap/sessions", b'{"a":' + b"[" * 200 + b"]" * 200 + b"}")),
    "a turn is running in this session; wait for its end or interrupt it": ({}, busy_aap),
    "Session is currently processing a turn. Cancel the current turn or wait for completion.": ({}, busy_cas),
    "the body is not JSON: …": ({}, posting("/aap/sessions", b"{'a': 1}")),
    "the body is larger than … bytes": ({"limits": {"body_bytes": 1024}}, posting("/aap/sessions", b" " * 2000)),
    "agent 'demo' has no tool 'hammer'; it has …":
        ({}, posting("/aap/sessions", {"agent": {"name": "demo", "tools": [{"name": "hammer"}]}})),
    "agent 'demo' has no option 'colour'; it has …":
        ({}, posting("/aap/sessions", {"agent": {"name": "demo", "options": {"colour": "red"}}})),
    "pages of '…' may not use this server; to allow them, add that origin to `origins:` in config.yaml":
        ({"dialects": {"zenflux": {}}}, other_origin),
    "this server does not answer to the name '…'; … add the name to `hosts:` in config.yaml":
        ({}, posting("/aap/sessions", AAP_SESSION, Host="gateway.example.com")),
    "Content-Type: a browser must send application/json or multipart/form-data, not '…'":
        ({}, posting("/aap/sessions", b"{}", Origin="http://localhost:3000")),
    "you may send … requests a second, and … at once; try again in … seconds":
        ({"limits": {"per_key": {"requests_per_second": 0.1, "request_burst": 1}}}, twice),
    "too many wrong keys came from this address; try again in … seconds":
        ({"auth": "keys", "limits": {"wrong_keys_per_minute": 1}}, twice),
    "The agent '…' failed unexpectedly.": (
        {"dialects": {"zenflux": {}}, "agents": {"one": {"backend": "python", "settings": {"agent": "raising:reply"}}}},
        raising_agent),
    "No model was chosen: name one in the session, or in the settings of the agent.": (
        {"dialects": {"zenflux": {}}, "agents": {"one": {"backend": "openai", "settings": {"url": NOBODY}}}},
        raising_agent),
}


@pytest.mark.parametrize("message", BY_REQUEST)
async def test_a_request_is_answered_with_it(message: str, tmp_path: Path) -> None:
    (tmp_path / "raising.py").write_text("async def reply(text):\n    raise OSError('no')\n    yield ''\n")
    settings, act = BY_REQUEST[message]
    async with serving(tmp_path, **{"log": "memory", **settings}) as served:
        status, text = await act(served)
    assert is_printed(message, text), text
    starts = (f"| `{message}` |", f"| `` {message} `` |")
    row = next(line for line in PAGE.text.splitlines() if line.startswith(starts))
    if told := re.findall(r"\b\d{3}\b", row.split(" | ")[1]):
        assert str(status) in told


# -- looked for in the source -----------------------------------------------------------------------------------------

IN_THE_SOURCE: Sequence[str] = (
    "there is no session '…' at …; `dragoman sessions …` lists those there are",  # tests/cli/test_chat.py asks for one
    "the server is about to stop and starts no new turns; ask again when it is back",  # tests/test_graceful_shutdown.py
    "MCP servers need a package that is not installed",  # the package is installed where tests run
    "… sent nothing …; is that its address? --timeout waits longer",  # tests/cli/test_chat.py waits for it
    "it is not known whether this was done: …",  # tests/security/test_redis_away.py
    "nothing can be stored just now: …",  # tests/storage/log brings it about with a disk that is full
)


@pytest.mark.parametrize("message", IN_THE_SOURCE)
def test_the_source_has_it(message: str) -> None:
    source = "".join(path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    assert [piece for piece in message.split("…") if piece.strip(" ;:") not in source] == []


def test_every_message_of_the_page_is_held_to_its_word() -> None:
    assert sorted(quoted()) == sorted({*AT_THE_COMMAND_LINE, *BY_REQUEST, *IN_THE_SOURCE})
