"""`dragoman replay` asks the running server, and shows no secrets even if the server does."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import Result

import gateway.model as m

Run = Callable[..., Result]
RECORDS = [
    m.Record(seq=1, at=1.0, session_id="sess_1", event=m.SessionCreated(agent="demo", settings=m.Settings(
        secrets={"openai": "s3cret"}))),
    m.Record(seq=2, at=2.0, session_id="sess_1", turn_id="turn_1", event=m.TurnStarted(command_id="cmd_1")),
]


class Server(BaseHTTPRequestHandler):
    """One session for whoever shows the key, and one that is no session at all."""

    def do_GET(self) -> None:
        allowed = self.headers["Authorization"] == "Bearer dgm_good"
        bodies = {"/replay/sess_1": b"\n".join(map(m.encode_record, RECORDS)) + b"\n", "/replay/odd": b"<html>\n"}
        body = bodies.get(self.path, b"")
        self.send_response(200 if allowed and body else 404 if allowed else 401)
        self.send_header("Content-Length", str(len(body) if allowed else 0))
        self.end_headers()
        self.wfile.write(body if allowed else b"")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(300)


def test_records_are_lines_without_secrets(dragoman: Run, url: str) -> None:
    result = dragoman("replay", "sess_1", "--url", url, "--key", "dgm_good")
    assert result.exit_code == 0
    assert [line.split()[2] for line in result.stdout.splitlines()] == ["session.created", "turn.started"]
    assert "***" in result.stdout
    assert "s3cret" not in result.output


def test_json_is_whole_but_without_secrets(dragoman: Run, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_KEY", "dgm_good")
    result = dragoman("replay", "sess_1", "--url", url + "/", "--json")
    records = [m.decode_record(line) for line in result.stdout.splitlines()]
    assert records[1] == RECORDS[1]
    assert "s3cret" not in result.output


def test_the_server_of_the_settings_is_asked(home: Path, dragoman: Run, url: str) -> None:
    with (home / "config.yaml").open("a") as config:
        config.write(f"port: {url.rpartition(':')[2]}\n")
    assert dragoman("replay", "sess_1", "--key", "dgm_good").exit_code == 0


@pytest.mark.parametrize(("words", "told"), [
    (["sess_1"], "a key is required; give one with --key or in DRAGOMAN_KEY"),
    (["sess_2", "--key", "dgm_good"], "there is no session 'sess_2'"),
    (["../healthz", "--key", "dgm_good"], "there is no session '../healthz'"),
    (["odd", "--key", "dgm_good"], "sent something that is not a record"),
])
def test_a_refusal_is_one_message(dragoman: Run, url: str, words: list[str], told: str) -> None:
    result = dragoman("replay", *words, "--url", url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_nobody_there_is_one_message(dragoman: Run, url: str) -> None:
    result = dragoman("replay", "sess_1", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "http://127.0.0.1:1 cannot be reached: " in result.stderr
    assert "dragoman serve" in result.stderr


@pytest.mark.parametrize("address", ["file:///etc/passwd", "localhost:80", "http://[bad", "http://h:99999"])
def test_only_http_is_asked(dragoman: Run, address: str) -> None:
    result = dragoman("replay", "sess_1", "--url", address)
    assert (result.exit_code, result.stderr) == (2, f"'{address}' is not an http or https address\n")


def test_a_free_port_cannot_be_guessed(home: Path, dragoman: Run) -> None:
    with (home / "config.yaml").open("a") as config:
        config.write("port: 0\n")
    assert "name the server with --url" in dragoman("replay", "sess_1").stderr
