"""The command that examines clients: what it says, what it runs, and how it ends."""

import asyncio
import json
import os
import pty
import shlex
import socket
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conformance.clients.command import parse_address
from conformance.clients.driver import PersonDriver
from conformance.clients.situation import Cue, Instruction
from gateway.cli import app

DRIVER = f"{sys.executable} -m conformance.clients.aap.client"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["conform-client", *words])
    return done.exit_code, done.output


def documented(place: int) -> list[str]:
    """The words of a command of the page on conformance, for this machine."""
    page = (Path(__file__).parents[2] / "docs/conformance.md").read_text()
    [block] = [part for part in page.split("```sh\n") if "--drive" in part.partition("```")[0]]
    command = block.splitlines()[place].replace("python -m", f"{sys.executable} -m")
    return [*shlex.split(command, comments=True)[2:], "--listen", ":0"]


def test_a_command_drives_the_client(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    code, printed = run(*documented(0), "--report", str(file))
    assert code == 0, printed
    assert "[1/1] echo: An answer arrives in pieces" in printed
    assert "2. When the answer is complete, copy it" in printed
    assert "passed AAP-CL-SSE-01" in printed
    told = json.loads(file.read_text())
    assert told["dialect"] == "aap-client"
    assert told["verdict"] == "conforms"


def test_a_wrong_client_fails_the_command(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, printed = run(*documented(1), "--report", str(page))
    assert code == 1, printed
    assert "failed AAP-CL-SSE-01" in printed
    text = page.read_text()
    assert "POST /aap/sessions" in text
    assert "Reproduce with curl" not in text, "the requests are the client's"


def test_a_driver_that_does_nothing_leaves_it_untested() -> None:
    code, printed = run("aap", "--listen", ":0", "--drive", "exit 7", "--only", "AAP-CL-SSE-01")
    assert code == 3, printed
    assert "not testable AAP-CL-SSE-01 the client did nothing" in printed


def test_a_port_that_is_taken_is_said_in_plain_words() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        code, printed = run("aap", "--listen", place, "--drive", "true", "--only", "AAP-CL-SSE-01")
    assert code == 2
    assert printed == f"cannot listen at {place}: address already in use; --listen takes another address\n"


def test_a_baseline_knows_the_failures(tmp_path: Path) -> None:
    known = tmp_path / "baseline.yaml"
    known.write_text(
        "dialect: aap-client\nknown_failures:\n"
        "  - {requirement: AAP-CL-SSE-01, reason: it keeps the last piece only, expires: 2099-01-01}\n"
    )
    words = "--drive", f"{DRIVER} last_delta", "--only", "AAP-CL-SSE-01", "--baseline", str(known)
    code, printed = run("aap", "--listen", ":0", *words)
    assert code == 0, printed


@pytest.mark.parametrize(("words", "told"), [
    (("nonsense",), "clients of 'nonsense' cannot be examined; those of these dialects can: aap"),
    (("aap", "--listen", "here"), "--listen here: write [HOST]:PORT"),
    (("aap", "--only", "AAP-CL-NONE-01"), "no such requirement: AAP-CL-NONE-01"),
    (("aap", "--report", "x.doc"), "'x.doc': say one of"),
])
def test_mistakes_are_told(words: tuple[str, ...], told: str) -> None:
    code, printed = run(*words)
    assert code == 2
    assert told in printed


def test_the_situations_are_listed() -> None:
    code, printed = run("aap", "--only", "AAP-CL-TOOL-03", "--list")
    assert code == 0
    assert printed.startswith("permission_denied: The agent asks before it uses a tool")
    assert "  3. Deny the tool when you are asked." in printed


def test_addresses() -> None:
    assert parse_address(":8080") == ("127.0.0.1", 8080)
    assert parse_address("0.0.0.0:80") == ("0.0.0.0", 80)
    assert parse_address("[::1]:80") == ("::1", 80)


def test_a_cue_comes_through_the_environment() -> None:
    cue = Cue("name", "http://127.0.0.1:1/x", "k", Instruction(("Do.",), ("one", "two"), option=1))
    assert Cue.from_environment(cue.environment()) == cue
    assert cue.environment()["DRAGOMAN_TEXT"] == "one"


def test_a_person_presses_enter_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        os.write(ours, b"\n")
        asyncio.run(PersonDriver()(Cue("name", "http://127.0.0.1:1", None, Instruction(("Do.",)))))
    os.close(ours)
