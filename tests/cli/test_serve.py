"""`dragoman serve` listens, says where, and stops when told; what keeps it from listening is one message."""

import re
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import Result

from gateway import server

Run = Callable[..., Result]
Started = Callable[..., subprocess.Popen[str]]
Real = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    found = re.search(r"http://[\d.]+:\d+", process.stdout.readline())
    assert found, process.stderr.read() if process.stderr else ""
    return found[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_takes_a_free_port_says_which_and_stops_when_told(started: Started, number: signal.Signals) -> None:
    server = started("--port", "0")
    with urlopen(address_of(server) + "/readyz", timeout=60) as answer:
        assert answer.status == 200
    server.send_signal(number)
    _, errors = server.communicate(timeout=300)
    assert server.returncode == 0
    assert "Traceback" not in errors


def test_a_port_in_use_is_one_message(real: Real, taken: int) -> None:
    result = real("serve", "--port", str(taken))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"cannot listen on 127.0.0.1:{taken}: the port is in use; stop what uses it, or choose another with --port "
        "(0 takes a free one)\n"
    )


def test_an_address_of_another_machine_is_one_message(home: Path, real: Real) -> None:
    with (home / "config.yaml").open("a") as config:
        config.write("auth: keys\nhost: 192.0.2.1\n")
    result = real("serve", "--port", "0")
    assert result.returncode == 2
    assert "this machine does not have that address; choose another with --host" in result.stderr
    assert "Traceback" not in result.stderr


def test_strangers_are_not_let_in_by_an_option(dragoman: Run) -> None:
    result = dragoman("serve", "--host", "0.0.0.0", "--port", "0")
    assert result.exit_code == 2
    assert result.stderr.startswith("option --host: auth: none is for this machine only, but on host '0.0.0.0'")


def test_the_command_line_reaches_the_server(home: Path, dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    async def run(
        config: object, *, watch: bool, announce: Callable[[str], None], overrides: object, worker: object,
    ) -> int:
        seen.append((config, watch))
        announce("listening")
        return 3

    monkeypatch.setattr(server, "run", run)
    result = dragoman("serve", "--host", "::1", "--port", "1", "--data", "here", "--watch")
    assert (result.exit_code, result.stdout) == (3, "listening\n")
    [(config, watch)] = seen
    assert (config.host, config.port, config.data, watch) == ("::1", 1, home / "here", True)  # type: ignore[attr-defined]


def test_other_trouble_is_not_explained_away(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(server, "run", run)
    result = dragoman("serve")
    assert isinstance(result.exception, OSError)


def test_ctrl_c_before_it_listens_is_a_good_end(dragoman: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object, **__: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "run", run)
    assert dragoman("serve").exit_code == 0
