"""Requests that may come twice: the second one gets the answer of the first, and nothing is carried out again."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import wraps
from hashlib import sha256

from aiohttp import web

from gateway.errors import Conflict, Invalid
from gateway.ports import Clock

from .guard import NOBODY, OWNER, Handler
from .jsonio import read_bytes
from .uploads import DIGEST, digest_of_parts

HEADERS = ("Idempotency-Key", "X-Idempotency-Key")
REPLAYED = "Idempotent-Replayed"
METHODS = ("POST", "DELETE")
MAX_KEY = 255

Place = tuple[str, str, str, str]
"""Owner, method, path and key."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that can be given again."""

    status: int
    body: bytes
    content_type: str

    def again(self) -> web.Response:
        headers = {REPLAYED: "true"} | ({"Content-Type": self.content_type} if self.body else {})
        return web.Response(status=self.status, body=self.body, headers=headers)


@dataclass(slots=True)
class Entry:
    """One key: what was asked with it, and the answer, as soon as there is one; none if it came to nothing."""

    at: float
    digest: str | None
    answer: asyncio.Future[Answer | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def size(self) -> int:
        return len(kept.body) if (kept := self.kept) else 0

    @property
    def kept(self) -> Answer | None:
        return self.answer.result() if self.answer.done() else None


class Idempotency:
    """The answers to requests that carried a key, by owner and path; bounded in number, size and age.

    Only what was carried out is kept. A refusal changed nothing, so the same request may be tried again with the same
    key; a stream is not kept, because nobody can give it twice.
    """

    def __init__(
        self, clock: Clock = time.monotonic, *, most: int = 10_000, most_bytes: int = 64 * 1024 * 1024,
        seconds: float = 86_400,
    ) -> None:
        self._clock = clock
        self._most, self._most_bytes, self._seconds = most, most_bytes, seconds
        self._entries: dict[Place, Entry] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def routes(self, routes: Iterable[web.RouteDef]) -> list[web.RouteDef]:
        """The same routes, those that change something wrapped; what is wrapped already stays as it is."""
        return [
            web.RouteDef(route.method, route.path, self.wrap(route.handler), route.kwargs)
            if route.method in METHODS and not hasattr(route.handler, "repeats") else route
            for route in routes
        ]

    def wrap(self, handler: Handler) -> Handler:
        @wraps(handler)
        async def wrapped(request: web.Request) -> web.StreamResponse:
            key = _key(request)
            if key is None:
                return await handler(request)
            return await self._once((request.get(OWNER, NOBODY), request.method, request.path, key), request, handler)

        wrapped.repeats = True  # type: ignore[attr-defined]
        return wrapped

    # -- the first, and those that come after it ------------------------------------------------------------------

    async def _once(self, place: Place, request: web.Request, handler: Handler) -> web.StreamResponse:
        """A request in parts is too large to be read before it is known whether it is the first."""
        digest = None if request.content_type.startswith("multipart/") else await _digest(request)
        self._forget()
        while (entry := self._entries.get(place)) is not None:
            if digest is None:
                digest = await digest_of_parts(request)
            _must_be_same(entry.digest, digest, place)
            answer = await asyncio.shield(entry.answer)
            _must_be_same(entry.digest, digest, place)
            if answer is not None:
                return answer.again()
            if request.content_type.startswith("multipart/"):
                raise Conflict("the first request with this Idempotency-Key came to nothing: send it again")
        entry = self._entries[place] = Entry(self._clock(), digest)
        # A client that hangs up does not undo what it asked for: the work goes on, and its retry gets the answer.
        task = asyncio.ensure_future(self._first(place, entry, request, handler))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _first(
        self, place: Place, entry: Entry, request: web.Request, handler: Handler,
    ) -> web.StreamResponse:
        answer = None
        try:
            response = await handler(request)
            answer = _answer(response)
            return response
        finally:
            entry.digest = request.get(DIGEST, entry.digest)
            entry.answer.set_result(answer)
            self._bytes += entry.size
            if answer is None:
                del self._entries[place]

    def _forget(self) -> None:
        """The oldest first, until the bounds are kept; what is still running stays."""
        now, gone = self._clock(), list[Place]()
        for place, entry in self._entries.items():
            many = len(self._entries) - len(gone) >= self._most or self._bytes > self._most_bytes
            if not many and now - entry.at <= self._seconds:
                break
            if entry.kept is not None:
                self._bytes -= entry.size
                gone.append(place)
        for place in gone:
            del self._entries[place]


def _key(request: web.Request) -> str | None:
    key = next((request.headers[name] for name in HEADERS if request.headers.get(name)), None)
    if key is not None and len(key) > MAX_KEY:
        raise Invalid(f"Idempotency-Key: at most {MAX_KEY} characters", param=HEADERS[0])
    return key


async def _digest(request: web.Request) -> str:
    return sha256(request.query_string.encode() + b"\0" + await read_bytes(request)).hexdigest()


def _must_be_same(first: str | None, now: str, place: Place) -> None:
    if first not in (None, now):
        raise Conflict(f"the Idempotency-Key '{place[-1]}' was used for another request", param=HEADERS[0])


def _answer(response: web.StreamResponse) -> Answer | None:
    if not isinstance(response, web.Response) or response.status >= 400:
        return None
    body = response.body
    if not isinstance(body, bytes | bytearray | None):
        return None
    return Answer(response.status, bytes(body or b""), response.headers.get("Content-Type", ""))
