"""A client that reads stored sessions again; it knows how many events it has had, and where it goes on."""

import time
from collections.abc import Sequence

import aiohttp
from yarl import URL

from .measure import BenchFailure
from .stored_sessions import StoredSession

LAST_EVENTS = 20
"""So many events before the end does a client go on that reads from the end."""
GIVE_UP_SECONDS = 300.0


Learned = dict[tuple[str, str], tuple[int, int, int]]
"""By session and dialect: the numbers of the event in the middle, of one shortly before the end, and of the last."""


class ReplayClient:
    """One client of one server; cursors that are numbers are learned from a replay from zero."""

    def __init__(self, http: aiohttp.ClientSession, address: str, learned: Learned) -> None:
        self.http, self.address = http, address
        self._learned = learned

    def learn(self, session: StoredSession, dialect: str, numbers: Sequence[int]) -> None:
        """Keep where a client can go on that has had these numbers."""
        self._learned[session.session_id, dialect] = numbers[len(numbers) // 2], numbers[-LAST_EVENTS], numbers[-1]

    def cursor(self, session: StoredSession, dialect: str, place: str) -> int:
        if place == "zero":
            return 0
        middle, end, _ = self._learned[session.session_id, dialect]
        return middle if place == "middle" else end

    def last(self, session: StoredSession, dialect: str) -> int | None:
        """The number of the last event; None if nobody has read the session yet."""
        found = self._learned.get((session.session_id, dialect))
        return None if found is None else found[2]

    async def get(self, path: str) -> bytes:
        async with self.http.get(URL(f"{self.address}{path}")) as response:
            body = await response.read()
        if response.status != 200:
            raise BenchFailure(f"GET {path} was answered with {response.status}: {body[:200]!r}")
        return body

    async def post(self, path: str, body: str) -> None:
        async with self.http.post(URL(f"{self.address}{path}"), data=body) as response:
            answer = await response.read()
        if response.status != 200:
            raise BenchFailure(f"POST {path} was answered with {response.status}: {answer[:200]!r}")

    async def stream(self, path: str, end: bytes) -> int:
        """How many bytes come until this mark has come, and a rest after it that is not read."""
        until, size, tail = time.monotonic() + GIVE_UP_SECONDS, 0, b""
        async with self.http.get(URL(f"{self.address}{path}")) as response:
            if response.status != 200:
                raise BenchFailure(f"GET {path} was answered with {response.status}")
            async for piece in response.content.iter_any():
                size += len(piece)
                if end in tail + piece:
                    return size
                tail = (tail + piece)[-len(end):]
                if time.monotonic() > until:
                    break
        raise BenchFailure(f"GET {path}: {end!r} did not come")


