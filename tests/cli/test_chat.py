"""`dragoman chat` at a real terminal and in a pipe, with a real server in every dialect."""

import http.server
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from typer.testing import Result

from tests.support import fork_server
from tests.support.chat.pty_terminal import Terminal, program, terminal
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.server_process import Running, running

Run = Callable[..., Result]
AGENT = {"backend": "demo", "tools": [{"name": "clock"}, {"name": "calc"}, {"name": "search", "permission": "ask"}]}
CLIENT_TOOLS = ("aap", "cas")
"""Dialects whose clients declare tools of their own, and say what the agent may do with its own."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = {"dialects": {name: {} for name in DIALECTS}, "agents": {"demo": AGENT}, "on_disconnect": "cancel"}
    with running(tmp_path_factory.mktemp("chat"), **settings) as served:
        yield served


def words_for(server: Running, name: str) -> list[str]:
    return ["chat", f"{server.address}{dialect(name).mount}", "--dialect", name]


def ask(screen: Terminal, said: str, *steps: tuple[str, str], until: str = " s\n") -> str:
    """Say something at the prompt, answer what comes, and wait for the end; all that was shown."""
    screen.type(f"{said}\n")
    shown = "".join(screen.wait_for(question) + str(screen.type(f"{answer}\n") or "") for question, answer in steps)
    return shown + screen.wait_for(until) + screen.wait_for("> ")


# -- at a terminal ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", DIALECTS)
def test_a_conversation_in_every_dialect(server: Running, name: str) -> None:
    own = ["--ask-before", "search", "--tool", "paint=Paints."] if name in CLIENT_TOOLS else []
    with terminal(*words_for(server, name), *own) as screen:
        screen.wait_for("> ")
        shown = ask(screen, '/think /tool calc {"expression": "6*7"} hello')
        assert "Let me think about that." in shown
        assert '{"expression":"6*7"}\n  └ 42\n' in shown
        assert "You said: hello\n" in shown
        assert "Colour: Red; Fruits: Apple, Cherry" in ask(
            screen, "/ask", ("a number, or your own words: ", "1"), ("numbers, or your own words: ", "1, 3"))
        assert "returned" in ask(screen, "/permit", ("allow? [y/N, or why not] ", "y"))
        assert "too risky" in ask(screen, "/permit", ("allow? [y/N, or why not] ", "too risky"))
        assert "I went on." in ask(screen, "/continue", ("go on? [Y/n] ", ""))
        assert "I rolled back to: step." in ask(screen, "/rollback", ("[a number; empty changes nothing] ", "1"))
        assert "the agent failed: " in ask(screen, "/fail")
        if name in CLIENT_TOOLS:
            assert "paint returned blue" in ask(screen, "/client-tool", ("result [empty declines] ", "blue"))
            assert "declined" in ask(screen, "/client-tool", ("result [empty declines] ", ""))
        interrupt(screen)
        assert "You said: still there?" in ask(screen, "still there?")
        screen.type("\x04")
        assert screen.code() == 0


def interrupt(screen: Terminal) -> None:
    screen.type("/slow 400\n")
    screen.wait_for("1 2 3")
    screen.press_ctrl_c()
    screen.wait_for("interrupting; Ctrl-C again leaves\n")
    assert "400" not in screen.wait_for("interrupted\n")
    screen.wait_for("> ")


def test_what_else_can_be_said_at_the_prompt(server: Running) -> None:
    with terminal(*words_for(server, "cas")) as screen:
        assert "talking with demo" in screen.wait_for("> ")
        assert "goes to the server, even if" in ask(screen, "/help", until="begins with /.\n")
        assert "│ I looked into: nothing" in ask(screen, "/fork")
        ask(screen, "/raw", until="events are shown\n")
        assert 'block.delta {"block_id":' in ask(screen, "hello", until="ended {")
        ask(screen, "/raw", until="events are no longer shown\n")
        ask(screen, "/new", until="a new session: sess_")
        assert "You said: hello" in ask(screen, "hello")
        screen.type("/exit\n")
        assert screen.code() == 0


@pytest.mark.parametrize("name", DIALECTS)
def test_a_session_that_is_there_is_gone_on_with(server: Running, name: str) -> None:
    """Also one that was made in another dialect; what it was told stays told."""
    with terminal(*words_for(server, "cas"), "--ask-before", "calc") as screen:
        screen.wait_for("session ")
        session_id = screen.wait_for("\n").strip()
        screen.wait_for("> ")
        assert "title: Trip" in ask(screen, "/title Trip")
        screen.type("\x04")
        assert screen.code() == 0
    joined = piped(server, name, "two\n", "--session", session_id)
    assert (joined.returncode, joined.stdout, joined.stderr) == (0, "You said: two\n", "")
    done = fork_server.run(program(["replay", session_id, "--url", server.address, "--json"]))
    said = [line for line in done.stdout.splitlines() if '"input.accepted"' in line]
    assert len(said) == 2, "both messages are in the one session"
    shown = [line for line in done.stdout.splitlines() if '"session.updated"' in line and '"settings"' in line]
    assert shown == [], "nobody changed its settings"


@pytest.mark.parametrize("name", DIALECTS)
def test_a_session_that_is_not_there_is_told(dragoman: Run, server: Running, name: str) -> None:
    result = dragoman(*words_for(server, name), "--session", "sess_nobody/../x")
    url = f"{server.address}{dialect(name).mount}"
    assert (result.exit_code, result.stderr) == (
        2, f"there is no session 'sess_nobody/../x' at {url}; `dragoman sessions {url}` lists those there are\n")


def test_a_session_is_not_what_a_wrong_address_lacks(dragoman: Run, server: Running) -> None:
    result = dragoman("chat", server.address, "--dialect", "aap", "--session", "sess_1")
    assert result.stderr.endswith(f"; is aap at this address? Dragoman has it at {server.address}/aap\n")


def test_what_only_a_new_session_is_told_is_refused(dragoman: Run, server: Running) -> None:
    result = dragoman(*words_for(server, "aap"), "--session", "sess_1", "--system", "be kind")
    assert (result.exit_code, result.stderr) == (
        2, "--system is for new sessions: an existing session keeps its system prompt\n")


def test_pasted_lines_are_one_message(server: Running) -> None:
    with terminal(*words_for(server, "aap")) as screen:
        screen.wait_for("> ")
        screen.type("\x1b[200~first\nsecond\n\nfourth\x1b[201~")
        screen.type("\n")
        assert screen.wait_for(" s\n").partition("You said: ")[2].startswith("first\nsecond\n\nfourth\n")
        screen.wait_for("> ")
        screen.type("\x04")
        assert screen.code() == 0


def test_ctrl_c_at_the_prompt_leaves(server: Running) -> None:
    with terminal(*words_for(server, "aap")) as screen:
        screen.wait_for("> ")
        screen.press_ctrl_c()
        assert screen.code() == 0
        assert "Traceback" not in screen.seen


def test_ctrl_c_at_a_question_interrupts_the_turn(server: Running) -> None:
    with terminal(*words_for(server, "cas")) as screen:
        screen.wait_for("> ")
        screen.type("/ask\n")
        screen.wait_for("own words: ")
        screen.press_ctrl_c()
        screen.wait_for("interrupted\n")
        screen.wait_for("> ")
        assert "You said: well" in ask(screen, "well")


def test_a_second_ctrl_c_leaves_at_once() -> None:
    """The server takes the message, and never says another word: not even that it was interrupted."""
    with Mute() as mute, terminal("chat", mute.address, "--dialect", "cas") as screen:
        screen.wait_for("> ")
        screen.type("hello\n")
        assert mute.heard.wait(300)
        screen.press_ctrl_c()
        screen.wait_for("interrupting; Ctrl-C again leaves\n")
        screen.press_ctrl_c()
        assert screen.code() == 130
        assert "Traceback" not in screen.seen


def test_ctrl_c_while_nobody_answers_leaves() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        with terminal("chat", f"http://127.0.0.1:{silent.getsockname()[1]}/x", "--dialect", "aap") as screen:
            connection, _ = silent.accept()
            with connection:
                connection.recv(1)
                screen.press_ctrl_c()
                assert screen.code() == 130
                assert "Traceback" not in screen.seen


class Mute:
    """Makes sessions, and leaves every other request without an answer for as long as it lives."""

    def __init__(self) -> None:
        self.heard, self._over = threading.Event(), threading.Event()
        mute = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if "stream" in self.path:
                    mute._over.wait(300)
                else:
                    self._answer(b'{"data":[{"id":"agent_1","type":"agent","name":"mute","version":1}],"has_more":false}')

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.endswith("/events"):
                    mute.heard.set()
                    mute._over.wait(300)
                else:
                    self._answer(b'{"id":"sess_1","type":"session","status":"idle"}')

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "Mute":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(300)


# -- without one ------------------------------------------------------------------------------------------------------

def piped(server: Running, name: str, said: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return fork_server.run(program([*words_for(server, name), *words]), input=said)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_pipe_gets_the_reply_and_a_fault_is_exit_code_one(server: Running, name: str) -> None:
    done = piped(server, name, "/think /tool clock hello\nand again\n/fail\nnever said\n")
    assert done.stdout.splitlines()[1:] == ["You said: hello", "You said: and again", "I am about to "]
    assert "\x1b" not in done.stdout
    assert done.returncode == 1
    assert done.stderr.startswith("the agent failed: ")
    assert len(done.stderr.splitlines()) == 1


def test_answers_come_through_the_pipe_too(server: Running) -> None:
    done = piped(server, "aap", "/ask\n2\nplums\n")
    assert (done.returncode, done.stdout) == (0, "AskUserQuestion returned Colour: Green; Fruits: plums\n")
    assert "? Colour: Which colour do you like?\n  1. Red" in done.stderr
    nobody = piped(server, "cas", "/ask\n2\n")
    assert nobody.returncode == 1, "a question that nobody answers is a failure"


def test_whoever_has_had_enough_of_a_reply_is_let_go(server: Running) -> None:
    pipe = subprocess.PIPE
    with fork_server.Popen(program(words_for(server, "aap")), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write("hello\n".encode("latin-1") + b"\xff\n")
        process.stdin.close()
        assert process.wait(300) == 0
        assert process.stderr.read() == b""


# -- what keeps us from talking ---------------------------------------------------------------------------------------

def test_which_dialects_there_are_is_told(dragoman: Run) -> None:
    told = f"there are: {', '.join(DIALECTS)}\n"
    without = dragoman("chat", "http://127.0.0.1:9/x")
    assert (without.exit_code, without.stderr) == (
        2, f"name the dialect of the server with --dialect; {told}")
    strange = dragoman("chat", "http://127.0.0.1:9/x", "--dialect", "nova")
    assert (strange.exit_code, strange.stderr) == (2, f"there is no dialect 'nova'; {told}")


@pytest.mark.parametrize("name", DIALECTS)
def test_a_server_that_is_not_there_is_one_line(dragoman: Run, name: str) -> None:
    result = dragoman("chat", "http://127.0.0.1:9/x", "--dialect", name, "--timeout", "60")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("http://127.0.0.1:9 cannot be reached (")
    assert result.stderr.endswith("; is it running, and is that its address?\n")
    assert len(result.stderr.splitlines()) == 1


def test_a_server_that_says_nothing_is_one_line(dragoman: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        result = dragoman("chat", f"http://127.0.0.1:{silent.getsockname()[1]}/aap", "--timeout", "0.3")
    assert result.exit_code == 2
    assert "sent nothing for" in result.stderr
    assert result.stderr.endswith("; is that its address? --timeout waits longer\n")


@pytest.mark.parametrize("name", DIALECTS)
def test_a_server_of_another_kind_is_one_line(dragoman: Run, server: Running, name: str) -> None:
    result = dragoman("chat", f"{server.address}/metrics", "--dialect", name, "--timeout", "60")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


def test_whoever_forgot_the_path_is_told_the_usual_one(dragoman: Run, server: Running) -> None:
    result = dragoman("chat", server.address, "--dialect", "aap", "--timeout", "60")
    assert result.exit_code == 2
    assert result.stderr.endswith(f"; is aap at this address? Dragoman has it at {server.address}/aap\n")


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "aap"])
def test_whoever_names_another_dialect_is_told_where_it_would_be(
    dragoman: Run, server: Running, name: str,
) -> None:
    result = dragoman("chat", f"{server.address}/aap", "--dialect", name, "--timeout", "60")
    assert result.exit_code == 2
    usual = f"{server.address}{dialect(name).mount}"
    assert result.stderr.endswith(f"; is {name} at this address? Dragoman has it at {usual}\n")


@pytest.mark.parametrize("name", DIALECTS)
def test_at_its_usual_path_a_dialect_need_not_be_named(server: Running, name: str) -> None:
    words = words_for(server, name)[:2]
    done = fork_server.run(program(words), input="hello\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "You said: hello\n", "")


@pytest.mark.parametrize("name", ["cas", "zenflux"])
def test_an_agent_that_is_not_there_is_what_is_asked_about(server: Running, name: str) -> None:
    done = piped(server, name, "hello\n", "--agent", "nobody")
    assert done.returncode == 2
    assert done.stderr.endswith("; is 'nobody' what the agent is called there? Without --agent the server chooses\n")
    assert ".;" not in done.stderr


def test_a_door_that_is_closed_is_one_line(dragoman: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = {"dialects": {name: {} for name in DIALECTS}, "auth": "keys"}
    with running(tmp_path_factory.mktemp("closed"), **settings) as closed:
        for name in DIALECTS:
            result = dragoman(*words_for(closed, name), "--timeout", "60", "--key", "not-the-key")
            assert result.exit_code == 2, name
            assert result.stderr.endswith(
                "; the key is wrong: give one that the server knows with --key or in DRAGOMAN_KEY\n"), name
            assert "not-the-key" not in result.output, name
            without = dragoman(*words_for(closed, name), "--timeout", "60")
            assert without.stderr.endswith(
                "; give a key that the server knows with --key or in DRAGOMAN_KEY\n"), name
            assert len(result.stderr.splitlines()) == 1, name


def test_at_a_closed_door_nobody_is_said_to_talk(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What the server tells anybody of its agent is no conversation yet."""
    folder = tmp_path_factory.mktemp("door")
    with (
        running(folder, dialects={"aap": {}}, auth="keys") as closed,
        terminal(*words_for(closed, "aap"), "--key", "not-the-key") as screen,
    ):
        assert screen.code() == 2
        assert "talking with" not in screen.seen
        assert "the key is wrong" in screen.seen


@pytest.mark.parametrize("url", [
    "localhost:1", "ftp://h/aap", "http://", "http:///aap", "http://[bad/aap", "http://h:99999/aap", "http://h:x/aap",
])
def test_what_is_no_address_is_told(dragoman: Run, url: str) -> None:
    result = dragoman("chat", url, "--dialect", "aap")
    assert (result.exit_code, result.stderr) == (
        2, f"'{url}' is not an http or https address; write it as http://HOST:PORT/PATH\n")


class Forgetful(http.server.BaseHTTPRequestHandler):
    """A server of AAP that never says `turn_stop`; its history has every turn."""

    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        capabilities = {"stream": {"delta": {}}, "history": {"full": {}}}
        agents = [{"name": "a", "version": "1.0.0", "capabilities": capabilities}]
        history = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hello there"}]
        if self.path == "/meta":
            self._say({"version": 3, "agents": agents})
        else:
            self._say({"history": {"full": history}}, 404 if "current" in self.path else 200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/sessions":
            self._say({"sessionId": "s1"}, 201)
        else:
            self._say(b'event: turn_start\ndata: {}\n\nevent: text_delta\ndata: {"delta":"Hello there"}\n\n')

    def _say(self, body: Any, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if isinstance(body, bytes) else "application/json")
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_a_warning_goes_to_standard_error_and_the_reply_alone_to_standard_output() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as forgetful:
        thread = threading.Thread(target=forgetful.serve_forever)
        thread.start()
        try:
            words = ["chat", f"http://127.0.0.1:{forgetful.server_port}", "--dialect", "aap"]
            done = fork_server.run(program(words), input="hello\n")
        finally:
            forgetful.shutdown()
            thread.join()
    assert (done.returncode, done.stdout) == (0, "Hello there\n")
    assert "turn_stop_missing" in done.stderr


def test_a_tool_that_is_not_there_is_told(dragoman: Run, server: Running) -> None:
    result = dragoman(*words_for(server, "aap"), "--ask-before", "hammer")
    assert result.stderr == "--ask-before hammer: there is no such tool; the agent has: clock, calc, search\n"
    listed = dragoman(*words_for(server, "zenflux"), "--ask-before", "hammer")
    assert listed.stderr == result.stderr
    silent = dragoman(*words_for(server, "blade"), "--ask-before", "calc")
    assert silent.stderr == (
        "--ask-before calc: there is no such tool; this server does not list the tools of its agent\n")
    for name in sorted({*DIALECTS} - {*CLIENT_TOOLS}):
        deaf = dragoman(*words_for(server, name), "--tool", "paint")
        assert (deaf.exit_code, deaf.stderr) == (2, "--tool paint: this server does not accept client tools\n"), name
    nameless = dragoman(*words_for(server, "aap"), "--tool", "=x")
    assert nameless.stderr == "--tool '=x': write NAME, or NAME=DESCRIPTION\n"


def test_help_has_an_example(dragoman: Run) -> None:
    result = dragoman("chat", "--help")
    assert result.exit_code == 0
    assert "Example: dragoman chat" in result.stdout
    assert all(name in result.stdout for name in DIALECTS)
