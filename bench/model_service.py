"""A model service for the bench: chat completions from prepared bytes, one write per delta."""

import heapq
import json
import select
import socket
import sys
import time
from collections.abc import Iterable
from functools import cache

from .protocols import PAUSE, Workload, workload_of

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FINE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
LAST_CHUNK = b"0\r\n\r\n"
READ = 1 << 16


def chunk(delta: dict[str, str] | None, finish: str | None = None, usage: dict[str, int] | None = None) -> bytes:
    """One event of a response; without choices if it has the usage."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    body = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "bench",
            "choices": choices, **({"usage": usage} if usage else {})}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def answer(talk: Workload) -> list[bytes]:
    """The events of a whole response."""
    cost = {"prompt_tokens": 2, "completion_tokens": len(talk.deltas), "total_tokens": 2 + len(talk.deltas)}
    return [
        chunk({"role": "assistant", "content": ""}), *(chunk({"content": delta}) for delta in talk.deltas),
        chunk({}, "stop"), chunk(None, usage=cost), b"data: [DONE]\n\n",
    ]


@cache
def script(message: str) -> tuple[float, list[bytes]]:
    """The pause before each delta, and the bytes: the beginning, the deltas, and the end of the response."""
    talk = workload_of(message)
    first, *deltas, stop, cost, done = map(_framed, answer(talk))
    return (PAUSE if talk.paced else 0.0), [HEAD + first, *deltas, stop + cost + done + LAST_CHUNK]


def _framed(event: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(event), event)


class MockConnection:
    """One connection: its request, and the response that it is sent."""

    __slots__ = ("at", "heard", "pause", "pieces", "rest", "wire")

    def __init__(self, wire: socket.socket) -> None:
        self.wire = wire
        self.heard = b""
        self.pause, self.pieces, self.at = 0.0, list[bytes](), 0
        self.rest = b""
        """The bytes of the last write that the socket did not take."""

    def hear(self, received: bytes) -> bool:
        """Add received bytes; if a request is complete, prepare its response."""
        head, found, body = (self.heard + received).partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if not found or len(body) < length:
            self.heard += received
            return False
        self.heard, self.at = body[length:], 0
        if head.startswith(b"POST"):
            self.pause, self.pieces = script(json.loads(body[:length])["messages"][-1]["content"])
        else:
            self.pause, self.pieces = 0.0, [FINE]
        return True

    def tell(self) -> bool | None:
        """Write one more delta; returns whether more follow, or None if the socket takes no more for now."""
        piece = self.rest or self.pieces[self.at]
        try:
            taken = self.wire.send(piece)
        except BlockingIOError:
            return None
        self.rest = piece[taken:]
        if self.rest:
            return None
        self.at += 1
        return self.at < len(self.pieces)


class MockModelService:
    """Serves all connections in one thread: each gets one delta in turn."""

    def __init__(self, port: int) -> None:
        self._door = socket.create_server(("127.0.0.1", port), backlog=1024)
        self._door.setblocking(False)
        self._poll = select.epoll()
        self._poll.register(self._door, select.EPOLLIN)
        self._callers: dict[int, MockConnection] = {}
        self._telling: dict[int, MockConnection] = {}
        self._later: list[tuple[float, int]] = []
        """When which connection is due; a heap."""

    def serve(self) -> None:
        while True:
            for number, happened in self._poll.poll(self._patience()):
                self._turn_to(number, happened)
            self._due()
            for number, caller in list(self._telling.items()):
                self._tell(number, caller)

    def _patience(self) -> float | None:
        if self._telling:
            return 0
        return max(0.0, self._later[0][0] - time.monotonic()) if self._later else None

    def _turn_to(self, number: int, happened: int) -> None:
        caller = self._callers.get(number)
        if caller is None:
            self._welcome()
        elif happened & select.EPOLLOUT:
            self._poll.modify(number, select.EPOLLIN)
            self._telling[number] = caller
        else:
            self._listen(number, caller)

    def _welcome(self) -> None:
        wire, _ = self._door.accept()
        wire.setblocking(False)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._callers[wire.fileno()] = MockConnection(wire)
        self._poll.register(wire, select.EPOLLIN)

    def _listen(self, number: int, caller: MockConnection) -> None:
        try:
            received = caller.wire.recv(READ)
        except OSError:
            received = b""
        if not received:
            self._forget(number)
        elif caller.hear(received):
            self._telling[number] = caller

    def _due(self) -> None:
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            _, number = heapq.heappop(self._later)
            if number in self._callers:
                self._telling[number] = self._callers[number]

    def _tell(self, number: int, caller: MockConnection) -> None:
        try:
            more = caller.tell()
        except OSError:
            self._forget(number)
            return
        if more and not caller.pause:
            return
        del self._telling[number]
        if more is None:
            self._poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        elif more:
            heapq.heappush(self._later, (time.monotonic() + caller.pause, number))

    def _forget(self, number: int) -> None:
        self._telling.pop(number, None)
        self._poll.unregister(number)
        self._callers.pop(number).wire.close()


def main(arguments: Iterable[str]) -> None:
    (port,) = arguments
    MockModelService(int(port)).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
