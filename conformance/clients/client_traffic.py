"""The traffic of a client in one situation: what it sent, when, and what it received."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from conformance.kit.transcript import Transcript

NO_BODY: Any = None


@dataclass
class Request:
    """One request of the client; `body` is its JSON, or None if it has none."""

    at: float
    method: str
    path: str
    """Below the mount."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    text: str
    turns_before: int
    """How many turns had ended when it came."""
    status: int | None = None
    """How it was answered; None while it is not."""
    ended_at: float | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}" + (f" {self.text}" if self.text else "")


@dataclass(frozen=True)
class Frame:
    """One message of the client on a socket; `name` is that of its event, where the dialect has such."""

    at: float
    connection: int
    name: str
    body: Any
    turns_before: int = 0

    def __str__(self) -> str:
        return f"{self.name} {orjson.dumps(self.body).decode()}".strip()


@dataclass(frozen=True)
class Ask:
    """Something that the client was asked."""

    at: float
    ref: str
    kind: str
    """A value of `agent_actions.Asked`."""
    session: str


@dataclass
class ClientTraffic:
    """All of one situation; whoever waits for news of it waits for `changed`."""

    transcript: Transcript
    requests: list[Request] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    asks: list[Ask] = field(default_factory=list)
    marks: dict[str, list[float]] = field(default_factory=dict)
    """When the server did what judgements ask about: cut, refused, began, ended, hung_up."""
    cuts: list[tuple[int, str]] = field(default_factory=list)
    """At each cut, how many requests there were before, and where a client that has read everything goes on."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What else judgements must know of the server."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    last_news: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether the client has done nothing."""
        return not self.requests and not self.frames

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def mark(self, name: str) -> None:
        self.marks.setdefault(name, []).append(self.now)
        self.news()

    def note_cut(self, cursor: str = "") -> None:
        self.cuts.append((len(self.requests), cursor))
        self.mark("cut")

    @property
    def after_cut(self) -> list[Request]:
        """The requests after the first cut."""
        return self.requests[self.cuts[0][0] :] if self.cuts else []

    def count(self, name: str) -> int:
        return len(self.marks.get(name, ()))

    def news(self) -> None:
        self.last_news = self.now
        self.changed.set()

    async def note_request(self, request: web.Request, mount: str, *, is_read: bool = True) -> Request:
        """Keep a request with its body, if that is to be read."""
        text = (await request.read()).decode("utf-8", "backslashreplace") if is_read else ""
        found = Request(
            self.now, request.method, request.path.removeprefix(mount), dict(request.query), request.headers,
            _parsed(text), text, self.count("ended"),
        )  # fmt: skip
        self.requests.append(found)
        headers = [(name, value) for name, value in request.headers.items() if name.lower() in SHOWN]
        self.transcript.received_head(f"{request.method} {request.path_qs}", headers)
        if text:
            self.transcript.received(text)
        self.news()
        return found

    def note_frame(self, connection: int, name: str, body: Any) -> None:
        self.frames.append(Frame(self.now, connection, name, body, self.count("ended")))
        self.transcript.received(str(self.frames[-1]))
        self.news()

    def note_ask(self, ref: str, kind: str, session: str) -> None:
        self.asks.append(Ask(self.now, ref, kind, session))

    def of(self, method: str, *paths: str) -> list[Request]:
        """The requests with this method whose path ends so."""
        return [item for item in self.requests if item.method == method and item.path.endswith(paths)]

    def asked(self, *kinds: str) -> list[str]:
        """The refs of what was asked."""
        return [ask.ref for ask in self.asks if ask.kind in kinds]


SHOWN = (
    "authorization", "content-type", "accept", "last-event-id", "idempotency-key", "x-idempotency-key", "x-api-key",
)  # fmt: skip
"""The headers that a transcript shows."""


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return NO_BODY


def times(items: Iterable[Request | Frame]) -> list[float]:
    return [item.at for item in items]
