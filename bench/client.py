"""The load client: raw sockets and one epoll; while the clock runs it only reads, and it checks the bytes later."""

import gc
import os
import select
import socket
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from .measure import BenchFailure, CpuTime, cpu_time

READ = 1 << 18
LAST_CHUNK = b"\r\n0\r\n\r\n"
GIVE_UP_SECONDS = 120.0


def dechunk(raw: bytes) -> bytes:
    """The body of a complete chunked message; raises `BenchFailure` if it is incomplete."""
    parts, at = list[bytes](), 0
    while True:
        end = raw.find(b"\r\n", at)
        if end < 0:
            raise BenchFailure("a chunked body without its last chunk")
        size = _size(raw[at:end])
        if not size:
            return b"".join(parts)
        parts.append(raw[end + 2:end + 2 + size])
        at = end + 2 + size + 2
        if raw[at - 2:at] != b"\r\n":
            raise BenchFailure("a chunk is not as long as it says")


def _size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise BenchFailure(f"not the size of a chunk: {line[:40]!r}") from None


class LoadResponse:
    """One HTTP response as it arrives: its chunks, and the time of each."""

    __slots__ = ("_chunked", "_need", "_tail", "pieces", "sent_at", "stamps", "status")

    def __init__(self) -> None:
        self.sent_at = 0.0
        self.status = 0
        self.pieces: list[bytes] = []
        self.stamps: list[float] = []
        self._chunked: bool | None = None
        self._need = 0
        self._tail = b""

    def take(self, piece: bytes, now: float) -> bool:
        """Add a chunk; whether the response is complete."""
        self.pieces.append(piece)
        self.stamps.append(now)
        if self._chunked:
            tail = piece if len(piece) >= len(LAST_CHUNK) else self._tail + piece
            self._tail = tail[-len(LAST_CHUNK):]
            return self._tail == LAST_CHUNK
        if self._chunked is None:
            return self._read_head()
        self._need -= len(piece)
        return self._need <= 0

    def _read_head(self) -> bool:
        head, found, body = b"".join(self.pieces).partition(b"\r\n\r\n")
        if not found:
            return False
        self.status, fields = int(head.split(b" ", 2)[1]), head.lower()
        self._chunked = b"transfer-encoding: chunked" in fields
        self._tail = (b"\r\n" + body)[-len(LAST_CHUNK):]
        if self._chunked:
            return self._tail == LAST_CHUNK
        length = fields.partition(b"content-length:")[2].split(b"\r\n")[0]
        self._need = int(length or 0) - len(body)
        return self._need <= 0

    def body(self) -> bytes:
        body = b"".join(self.pieces).partition(b"\r\n\r\n")[2]
        return dechunk(body) if self._chunked else body

    def arrivals(self, mark: bytes) -> list[float]:
        """The time at which each event with that mark had arrived, up to its mark."""
        raw, ends, total, times = b"".join(self.pieces), list[int](), 0, list[float]()
        for piece in self.pieces:
            total += len(piece)
            ends.append(total)
        at = raw.find(mark)
        while at >= 0:
            times.append(self.stamps[bisect_left(ends, at + len(mark))])
            at = raw.find(mark, at + len(mark))
        return times


@dataclass(frozen=True)
class BatchResult:
    """The result of one round of requests."""

    answers: Sequence[LoadResponse]
    seconds: float
    client_busy: float
    """The share of the time in which the client was busy; near 1 it was the bottleneck."""
    client_kept_off: float
    """The share of the time in which other processes had the client's core."""


class Connections:
    """Open sockets to one server, each with at most one open request."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sockets: list[socket.socket] = []

    def __enter__(self) -> "Connections":
        return self

    def __exit__(self, *_: object) -> None:
        for connection in self.sockets:
            connection.close()

    def open(self, count: int) -> Sequence[socket.socket]:
        """Open so many more sockets."""
        fresh = [socket.create_connection(("127.0.0.1", self._port), timeout=10) for _ in range(count)]
        for connection in fresh:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets += fresh
        return fresh


class RequestBatch:
    """Send one request on each socket, all at once, and read the responses."""

    def __init__(self, sockets: Sequence[socket.socket], requests: Sequence[bytes], rest: float = 0.0) -> None:
        self._rest = rest
        self.answers = [LoadResponse() for _ in requests]
        self._sockets = sockets
        self._requests = requests
        self._waiting = {sock.fileno(): (sock, answer) for sock, answer in zip(sockets, self.answers, strict=True)}
        self._poll = select.epoll()
        self._started, self._before = 0.0, CpuTime(0.0, 0.0)

    def __enter__(self) -> "RequestBatch":
        for number in self._waiting:
            self._poll.register(number, select.EPOLLIN)
        gc.disable()
        self._started, self._before = time.perf_counter(), cpu_time(os.getpid())
        for connection, answer, request in zip(self._sockets, self.answers, self._requests, strict=True):
            answer.sent_at = time.perf_counter()
            connection.sendall(request)
        return self

    def __exit__(self, *_: object) -> None:
        gc.enable()
        self._poll.close()

    @property
    def is_waiting(self) -> bool:
        """Whether a response is not complete."""
        return bool(self._waiting)

    def read(self, seconds: float) -> None:
        """Read until all responses are complete, or for so long."""
        clock, waiting = time.perf_counter, self._waiting
        until = clock() + seconds
        while waiting and (left := until - clock()) > 0:
            for number, _ in self._poll.poll(left):
                self._take(number)
            if self._rest:
                time.sleep(self._rest)

    def _take(self, number: int) -> None:
        connection, answer = self._waiting[number]
        piece = connection.recv(READ)
        if not piece:
            raise BenchFailure("the server closed a connection before its answer was complete")
        if answer.take(piece, time.perf_counter()):
            self._poll.unregister(number)
            del self._waiting[number]

    def finish(self) -> BatchResult:
        """Read to the end."""
        self.read(GIVE_UP_SECONDS)
        if self._waiting:
            raise BenchFailure(
                f"{len(self._waiting)} of {len(self.answers)} answers did not end in {GIVE_UP_SECONDS:g} s"
            )
        seconds, used = time.perf_counter() - self._started, cpu_time(os.getpid()) - self._before
        return BatchResult(self.answers, seconds, used.cpu / seconds, used.waited / seconds)


def run_batch(sockets: Sequence[socket.socket], requests: Sequence[bytes], rest: float = 0.0) -> BatchResult:
    """All responses; a client that sleeps after each poll reads more at a time, and has less work."""
    with RequestBatch(sockets, requests, rest) as playing:
        return playing.finish()


def fetch(port: int, request: bytes) -> LoadResponse:
    """Send one request on a connection of its own."""
    with Connections(port) as connections:
        return run_batch(connections.open(1), [request]).answers[0]
