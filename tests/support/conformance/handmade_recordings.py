"""Recordings written by hand: what servers do that no prompt of the examiners brings about."""

from typing import Any

import orjson
from multidict import CIMultiDict

from conformance.kit.suite import load_suite
from conformance.kit.verdict import Outcome
from conformance.offline.judge import judge
from conformance.offline.recording import Ending, Exchange, Frame, Piece, Recording

Body = dict[str, Any]
SOCKET = "/socket.io/"


class RecordingBuilder:
    """A recording that is made exchange by exchange, in the order things cross the wire."""

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._exchanges: list[Exchange] = []
        self._socket: Exchange | None = None
        self._order = 0

    def ask(self, method: str, path: str, told: Any = None, *, sent: Any = None, status: int = 200) -> None:
        """A request and its answer in JSON."""
        item = self._begin(method, path, sent)
        self._answer(item, status, "application/json", b"" if told is None else orjson.dumps(told))
        self._end(item)

    def stream(self, method: str, path: str, *events: tuple[str, Body], sent: Any = None) -> None:
        """A request that is answered with a whole stream of events."""
        item = self.open(method, path, sent)
        for name, body in events:
            self.tell(item, name, body)
        self._end(item)

    def open(self, method: str, path: str, sent: Any = None) -> Exchange:
        """A stream that stays open; it begins with a comment."""
        item = self._begin(method, path, sent)
        self._answer(item, 200, "text/event-stream", b": open\n\n")
        return item

    def tell(self, stream: Exchange, name: str, body: Body) -> None:
        head = f"id: {body['id']}\n" if "id" in body else ""
        self._piece(stream, f"{head}event: {name}\ndata: {orjson.dumps(body).decode()}\n\n".encode())

    def close(self, stream: Exchange) -> None:
        """The server ends a stream."""
        self._end(stream)

    # -- sockets ---------------------------------------------------------------------------------------------------

    def frame(self, text: str, *, is_sent: bool, path: str = SOCKET) -> None:
        """One frame of the only socket there is."""
        if self._socket is None:
            self._socket = self._begin("GET", path)
            self._socket.status = 101
        order = self._next()
        self._socket.frames.append(Frame(f"line {order}", order, float(order), is_sent, text))

    def send(self, name: str, body: Body) -> None:
        """An event of Socket.IO from the client."""
        self.frame(f"42{orjson.dumps([name, body]).decode()}", is_sent=True)

    def hear(self, *events: tuple[str, Body]) -> None:
        """Events of Socket.IO from the server."""
        for name, body in events:
            self.frame(f"42{orjson.dumps([name, body]).decode()}", is_sent=False)

    def poll(self, *events: tuple[str, Body]) -> None:
        """Events of Socket.IO that one poll brought all at once."""
        texts = (f"42{orjson.dumps([name, body]).decode()}" for name, body in events)
        item = self._begin("GET", SOCKET)
        self._answer(item, 200, "text/plain", "\x1e".join(texts).encode())
        self._end(item)

    # -- the judgement ---------------------------------------------------------------------------------------------

    def failed(self) -> dict[str, str]:
        """What is held against the server, each requirement with its words; nothing may make the judge stumble."""
        suite = load_suite(self._dialect)
        recording = Recording("by hand", self._exchanges, self._dialect, "")
        report = judge(suite, recording, suite.catalogue.requirements)
        assert [result.reason for result in report.results if "stumbled" in (result.reason or "")] == []
        return {item.requirement.id: item.grave[0].remark for item in report.of(Outcome.FAILED)}

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _begin(self, method: str, path: str, sent: Any = None) -> Exchange:
        order = self._next()
        path, _, query = path.partition("?")
        pairs = tuple((name, value) for name, _, value in (it.partition("=") for it in query.split("&") if it))
        body = None if sent is None else orjson.dumps(sent)
        item = Exchange(len(self._exchanges) + 1, f"line {order}", order, float(order), method, path, pairs, body=body)
        self._exchanges.append(item)
        return item

    def _answer(self, item: Exchange, status: int, kind: str, data: bytes) -> None:
        item.status, item.answered = status, self._next()
        item.reply_headers = CIMultiDict({"Content-Type": kind, "X-Request-ID": f"req_{item.number}"})
        self._piece(item, data)

    def _piece(self, item: Exchange, data: bytes) -> None:
        order = self._next()
        item.pieces.append(Piece(f"line {order}", order, float(order), data))

    def _end(self, item: Exchange) -> None:
        item.ended, item.ending = self._next(), Ending.WHOLE
