"""A Redis server of a test's own: on a free port, in a folder of the test's, with its append-only file on."""

import atexit
import shutil
import socket
import subprocess
import time
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.ports import free_port

SERVER = shutil.which("redis-server")
BOUND = 10.0


class RedisServer:
    """Started, stopped, killed and started again; with its data or without."""

    def __init__(self, folder: Path, port: int | None = None, *options: str) -> None:
        self.folder, self._options = folder, options
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        if SERVER is None:
            pytest.fail("redis-server is not installed; `apt-get install redis-server`")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
             "--appendonly", "yes", "--appendfsync", "everysec", "--loglevel", "warning", *self._options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + BOUND
        while not self._answers():
            assert time.monotonic() < deadline, "redis-server does not come up"
            time.sleep(0.02)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as line:
                line.sendall(b"PING\r\n")
                return line.recv(64).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(BOUND)
            self._process = None

    def lose_everything(self) -> None:
        """The data of a server that is stopped."""
        shutil.rmtree(self.folder)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


@cache
def redis_of_this_run() -> RedisServer:
    """One for all who need no more than a prefix of their own; it goes when the process ends."""
    folder = Path(mkdtemp(prefix="dragoman-redis-"))
    server = RedisServer(folder)
    server.start()
    atexit.register(lambda: (server.stop(kill=True), shutil.rmtree(folder, ignore_errors=True)))
    return server
