"""A server in a process of its own, started with the command line of a user."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.support import fork_server
from tests.support.gateway_server import PLAIN

PROGRAM = [sys.executable, "-c", "from gateway.cli import main; main()"]
PATIENCE = 300.0
"""Seconds that only a process that hangs would need."""


class Running:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], greeting: list[str], errors: Path) -> None:
        self.process = process
        self.greeting = greeting
        self.errors = errors
        found = re.search(r"https?://[\d.]+:\d+", greeting[0])
        assert found, greeting
        self.address = found[0]

    def until_told(self, words: str, times: int = 1) -> str:
        """What the journal has told, once it has told this so many times."""
        follow = ["tail", "--lines=+1", "--follow", f"--pid={self.process.pid}", str(self.errors)]
        with subprocess.Popen(follow, stdout=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            told = ""
            for line in tail.stdout:
                told += line
                if told.count(words) >= times:
                    tail.kill()
                    return told
        raise AssertionError(f"the server ended and had not told {words!r}; {told}")

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def running(folder: Path, *words: str, **settings: object) -> Iterator[Running]:
    file, errors = folder / "config.yaml", folder / "errors.txt"
    file.write_text(yaml.safe_dump({**PLAIN, "port": 0, **settings}))
    with errors.open("w") as told:
        process = fork_server.Popen(
            [*PROGRAM, "serve", "--config", str(file), *words], stdout=subprocess.PIPE, stderr=told, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert process.stdout is not None
            greeting = []
            while not greeting or not greeting[-1].lstrip().startswith("curl -sN"):
                line = process.stdout.readline()
                assert line, f"it ended: {errors.read_text()}"
                greeting.append(line.rstrip("\n"))
            yield Running(process, greeting, errors)
        finally:
            process.kill()
            process.wait(PATIENCE)
            process.stdout.close()
