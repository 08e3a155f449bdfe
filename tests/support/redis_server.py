"""A Redis server of a test's own: on a free port, in a folder of the test's, with its append-only file on.

It keeps the time of a simulated loop: what it was asked is answered before the loop's clock moves, and a key that is
to expire expires when the loop's clock says so.
"""

import atexit
import os
import shutil
import socket
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import IO

import pytest

from tests.simulation.external_servers import NEIGHBOURS
from tests.support.free_ports import free_port
from tests.support.storage.one_slot_scripts import hold_scripts_to_one_slot

SERVER = shutil.which(os.environ.get("REDIS_SERVER", "redis-server"))
"""The program; the variable may name another one, such as Valkey's."""
HANG = 60.0
"""Only a server that hangs takes so many seconds."""
PATIENCE = 50
"""After so many rounds in which nothing more was read, the rest of a question has not been sent yet."""
READY = b"Ready to accept connections"
HOLD = """#!lua flags=allow-cross-slot-keys,allow-oom,allow-oom
local held = {}
if string.find(redis.call('INFO', 'keyspace'), 'expires=[1-9]') then
  for _, key in ipairs(redis.call('KEYS', '*')) do
    local left = redis.call('PTTL', key)
    if left >= 0 then
      redis.call('PERSIST', key)
      held[#held + 1] = key
      held[#held + 1] = tostring(left)
    end
  end
end
return held
"""
"""Takes from every key the time at which it is to expire, so that the server's own clock does not decide that."""


class RedisServer:
    """Started, stopped, killed and started again; with its data or without."""

    def __init__(self, folder: Path, port: int | None = None, *options: str) -> None:
        self.folder, self._options = folder, options
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._replies: IO[bytes] | None = None
        self._expiring: dict[bytes, float] = {}
        self._unfinished: dict[bytes, bytes] = {}
        self._looks = 0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        if SERVER is None:
            pytest.fail("redis-server is not installed; `apt-get install redis-server`")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
             "--appendonly", "yes", "--appendfsync", "everysec", "--loglevel", "notice", *self._options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        self._wait_for(READY)
        NEIGHBOURS[self.port] = self

    def _wait_for(self, words: bytes) -> None:
        assert self._process is not None and self._process.stdout is not None
        told = []
        for line in self._process.stdout:
            told.append(line)
            if words in line:
                return
        pytest.fail(f"redis-server does not come up: {b''.join(told).decode()}")

    def take_all_slots(self) -> None:
        """Be a cluster of one node."""
        self._ask(b"CLUSTER", b"ADDSLOTSRANGE", b"0", b"16383")
        self._wait_for(b"Cluster state changed: ok")

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            NEIGHBOURS.pop(self.port, None)
            self._hang_up()
            self._process.kill() if kill else self._process.terminate()
            self._process.communicate(timeout=HANG)
            self._process = None

    def lose_everything(self) -> None:
        """The data of a server that is stopped."""
        shutil.rmtree(self.folder)

    # -- the time of a simulated loop -----------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """A server answers in rounds: in the round of our first question it does all that was asked before."""
        self._ask(b"PING")
        held = self._ask(b"EVAL", HOLD.encode(), b"0")
        self._expiring |= {key: now + int(left) / 1000 for key, left in zip(held[::2], held[1::2], strict=True)}

    def is_busy(self) -> bool:
        """Whether a client has sent more than was read in one round; who waits for something is not read from."""
        [listed] = self._ask(b"CLIENT", b"LIST")
        clients = [dict(word.split(b"=", 1) for word in line.split()) for line in listed.splitlines()]
        unfinished = {one[b"id"]: one[b"qbuf"] for one in clients if one[b"qbuf"] != b"0"
                      and b"b" not in one[b"flags"] and not one[b"cmd"].startswith(b"client")}
        self._looks = self._looks + 1 if unfinished == self._unfinished else 0
        self._unfinished = unfinished
        self._ask(b"PING")  # answered in a later round: all answers of the round of the list are on their way
        return bool(unfinished) and self._looks < PATIENCE

    def age(self, now: float) -> None:
        over = [key for key, until in self._expiring.items() if until <= now]
        if over:
            for key in over:  # those of a cluster may be in several slots
                self._ask(b"DEL", key)
            self._expiring = {key: until for key, until in self._expiring.items() if until > now}

    def forget(self) -> None:
        """Everything that is stored."""
        self._ask(b"FLUSHALL")
        self._expiring = {}

    def _ask(self, *words: bytes) -> list[bytes]:
        """Ask the server something beside the loop."""
        if self._line is None or self._replies is None:
            self._line = socket.create_connection(("127.0.0.1", self.port), HANG)
            self._replies = self._line.makefile("rb")
        self._line.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self._reply(self._replies)

    def _reply(self, replies: IO[bytes]) -> list[bytes]:
        kind, words = (line := replies.readline())[:1], line[1:].strip()
        if kind == b"*":
            return [word for _ in range(int(words)) for word in self._reply(replies)]
        if kind == b"$":
            return [replies.read(int(words) + 2)[:-2]]
        assert kind in (b"+", b":"), line
        return [words]

    def _hang_up(self) -> None:
        if self._line is not None and self._replies is not None:
            self._replies.close()
            self._line.close()
            self._line = self._replies = None


@cache
def redis_of_this_run() -> RedisServer:
    """One for all who need no more than a prefix of their own; it goes when the process ends."""
    folder = Path(mkdtemp(prefix="dragoman-redis-"))
    server = RedisServer(folder)
    server.start()
    atexit.register(lambda: (server.stop(kill=True), shutil.rmtree(folder, ignore_errors=True)))
    return server


@cache
def cluster_of_this_run() -> RedisServer:
    """A cluster of one node, for all who need no more than a prefix of their own; it goes when the process ends."""
    hold_scripts_to_one_slot()
    folder = Path(mkdtemp(prefix="dragoman-cluster-"))
    server = RedisServer(folder, None, "--cluster-enabled", "yes")
    server.start()
    server.take_all_slots()
    atexit.register(lambda: (server.stop(kill=True), shutil.rmtree(folder, ignore_errors=True)))
    return server


def cluster_url(prefix: str, partitions: int = 4) -> str:
    """The address of the data in that cluster under a prefix."""
    return f"redis+cluster://127.0.0.1:{cluster_of_this_run().port}?prefix={prefix}&wait=0&partitions={partitions}"
