"""A thousand who watch one session, of whom a hundred take nothing: they are cut, and nobody else notices."""

import json
import re
import resource
import selectors
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.client import dechunk
from bench.measure import rss_bytes
from tests.support.server_process import Running, running

CAS = "/api/v1/cloud/sessions"
PLAIN, DELTAS = "events/stream", "events/stream?event_deltas[]=agent.message"
READERS, LISTENERS, COUNTERS, HUNG = 300, 500, 100, 100
"""Who read every word of one dialect, its events only, every word of another, and nothing at all."""
WORDS = 4000
SEND_SECONDS = 8
MIB = 2**20
PATIENCE = 300.0
"""Seconds that only a server that hangs would need."""
COMMENT = re.compile(rb"^:[^\n]*\n\n", re.MULTILINE)
END = b"event: session.status_idle\n"
SHARE = 0.5
"""What may be kept for those who take nothing, of what a copy of the stream for each of them would be."""


class Watcher:
    """One raw connection, and what came over it."""

    def __init__(self, port: int, path: str, *, room: int | None = None) -> None:
        self.socket = socket.socket()
        if room is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.pieces: list[bytes] = []
        self.tail = b""

    def take(self) -> bool:
        """Whether there was anything."""
        piece = self.socket.recv(1 << 18)
        self.pieces.append(piece)
        self.tail = (self.tail + piece)[-2000:]
        return bool(piece)

    @property
    def is_over(self) -> bool:
        return self.tail.endswith(b"\r\n0\r\n\r\n") or (END in self.tail and self.tail.endswith(b"\n\n\r\n"))

    @property
    def body(self) -> bytes:
        head, _, body = b"".join(self.pieces).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        return COMMENT.sub(b"", dechunk(body if body.endswith(b"0\r\n\r\n") else body + b"0\r\n\r\n"))


def read_all(watchers: list[Watcher]) -> None:
    """Until all of them have heard the end."""
    with selectors.DefaultSelector() as poll:
        for watcher in watchers:
            poll.register(watcher.socket, selectors.EVENT_READ, watcher)
        end = time.monotonic() + PATIENCE
        while poll.get_map() and time.monotonic() < end:
            for key, _ in poll.select(1.0):
                watcher: Watcher = key.data
                if not watcher.take() or watcher.is_over:
                    poll.unregister(watcher.socket)
    late = [watcher for watcher in watchers if not watcher.is_over]
    assert not late, f"{len(late)} of {len(watchers)} did not hear the end; one heard {late[0].tail[-300:]!r}"


def ask(address: str, body: Any = None) -> bytes:
    given = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address, given), timeout=PATIENCE) as answer:
        return bytes(answer.read())


def figure(server: Running, name: str) -> float:
    found = re.search(rf"^dragoman_{name} (\S+)$", ask(f"{server.address}/metrics").decode(), re.MULTILINE)
    assert found, name
    return float(found[1])


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def open_ones() -> Iterator[list[Watcher]]:
    watchers: list[Watcher] = []
    try:
        yield watchers
    finally:
        for watcher in watchers:
            watcher.socket.close()


def test_those_who_take_nothing_are_cut_and_the_others_hear_everything(tmp_path: Path) -> None:
    """Twice without them, to see how a server grows with so many, and once with them: it may not grow much more."""
    limits = {"send_seconds": SEND_SECONDS, "heartbeat_seconds": 2}
    with running(tmp_path, limits=limits) as server:
        rss, heard = [rss_bytes(server.process.pid)], 0
        for hung in (0, 0, HUNG):
            heard = _all_hear(server, hung=hung)
            rss.append(rss_bytes(server.process.pid))
        assert figure(server, "cut_subscribers_total") == HUNG
        without, with_them, copies = max(0, rss[2] - rss[1]), rss[3] - rss[2], HUNG * heard
        share = (with_them - without) / copies
        print(f"+{without / MIB:.1f} MiB without, +{with_them / MIB:.1f} MiB with them: {share:.0%} of their copies")
        assert share < SHARE


def _all_hear(server: Running, *, hung: int) -> int:
    """A session with its watchers; how many bytes one of them has heard."""
    port = int(server.address.rpartition(":")[2])
    made = json.loads(ask(f"{server.address}/aap/sessions", {"agent": {"name": "demo"}}))["sessionId"]
    words, events = f"{CAS}/{made}/{DELTAS}", f"{CAS}/{made}/{PLAIN}"
    turn = f"/aap/sessions/{made}/turns/current"
    with open_ones() as them:
        hanging, heard = [Watcher(port, words, room=4096) for _ in range(hung)], dict[str, list[Watcher]]()
        them += hanging
        for path, count in ((words, READERS), (events, LISTENERS)):
            heard[path] = [Watcher(port, path) for _ in range(count)]
        said = {"type": "user.message", "content": f"/slow 40 /burst {WORDS}"}
        ask(f"{server.address}{CAS}/{made}/events", {"events": [said]})
        heard[turn] = [Watcher(port, turn) for _ in range(COUNTERS)]
        them += [watcher for watchers in heard.values() for watcher in watchers]
        read_all(them[hung:])
        _wait_for_cuts(server, events, hung)
        for path, watchers in heard.items():
            told = _told(port, path)
            assert told.count(b"word ") >= WORDS
            for watcher in watchers:
                assert watcher.body == told, "everything, in order, once"
        return len(heard[words][0].body)


def _told(port: int, path: str) -> bytes:
    with open_ones() as alone:
        alone.append(Watcher(port, path))
        read_all(alone)
        return alone[0].body


def _wait_for_cuts(server: Running, path: str, count: int) -> None:
    """Look after every heartbeat: those who are cut do not hear of it, for they do not read."""
    with open_ones() as alone:
        beside = Watcher(int(server.address.rpartition(":")[2]), path)
        beside.socket.settimeout(PATIENCE)
        alone.append(beside)
        while figure(server, "cut_subscribers_total") < count:
            assert beside.take(), "the server hung up"
