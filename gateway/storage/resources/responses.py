"""The responses to requests with an idempotency key, kept for a while, in memory or in SQLite."""

import sqlite3
from dataclasses import dataclass

from msgspec.structs import replace

from gateway.ports import Clock, IdempotencyKey, StoredResponse
from gateway.storage.sealing import UNSEALED, Seal
from gateway.storage.sqlite import Database, add_to_counter

NUMBER, BYTES = "answers.number", "answers.bytes"
"""The counters of responses and of their bytes."""

FIND = "SELECT digest, status, content_type, body FROM answers WHERE"
DROP = "DELETE FROM answers WHERE"
ONE = "owner = ? AND method = ? AND path = ? AND key = ?"
OLDEST = "(owner, method, path, key) IN (SELECT owner, method, path, key FROM answers ORDER BY at LIMIT 1)"


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """How many responses are kept, how many bytes they may have together, and for how many seconds."""

    most: int = 10_000
    most_bytes: int = 64 * 1024 * 1024
    seconds: float = 86_400

    def allow(self, number: int, size: int) -> bool:
        """Whether so many responses may stay; the last one always stays."""
        return number <= 1 or (number <= self.most and size <= self.most_bytes)


DEFAULT_RESPONSE_LIMITS = ResponseLimits()


def seal_response(answer: StoredResponse, seal: Seal) -> StoredResponse:
    """The response with a sealed body: a body may contain secrets of the request."""
    return replace(answer, body=seal.seal_bytes(answer.body))


def unseal_response(answer: StoredResponse, seal: Seal) -> StoredResponse | None:
    """The response as it was given; None if its key is unknown."""
    body = seal.unseal_bytes(answer.body)
    return None if body is None else replace(answer, body=body)


class SingleServerClaims:
    """The claims of a store that one server uses: nobody else executes anything."""

    async def claim(self, place: IdempotencyKey) -> None:
        """Nobody else has it."""

    async def release(self, place: IdempotencyKey) -> None:
        """Nobody else waits for it."""


class MemoryResponses:
    """Responses in memory."""

    def __init__(self, clock: Clock, bounds: ResponseLimits = DEFAULT_RESPONSE_LIMITS) -> None:
        claims = SingleServerClaims()
        self.claim, self.release = claims.claim, claims.release
        self._clock = clock
        self._bounds = bounds
        self._kept: dict[IdempotencyKey, tuple[float, StoredResponse]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    async def find(self, place: IdempotencyKey) -> StoredResponse | None:
        self._forget()
        at_and_answer = self._kept.get(place)
        return at_and_answer[1] if at_and_answer else None

    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        if place in self._kept:
            self._drop(place)
        self._kept[place] = self._clock(), answer
        self._bytes += len(answer.body)
        self._forget()

    def _forget(self) -> None:
        while self._kept:
            place, (at, _) = next(iter(self._kept.items()))
            if self._bounds.allow(len(self._kept), self._bytes) and self._clock() - at <= self._bounds.seconds:
                return
            self._drop(place)

    def _drop(self, place: IdempotencyKey) -> None:
        self._bytes -= len(self._kept.pop(place)[1].body)


class SqliteResponses:
    """Responses in SQLite: after a restart they are still there."""

    def __init__(
        self, database: Database, clock: Clock, bounds: ResponseLimits = DEFAULT_RESPONSE_LIMITS, seal: Seal = UNSEALED,
    ) -> None:
        claims = SingleServerClaims()
        self.claim, self.release = claims.claim, claims.release
        self._database = database
        self._clock = clock
        self._bounds = bounds
        self._seal = seal

    async def find(self, place: IdempotencyKey) -> StoredResponse | None:
        since = self._clock() - self._bounds.seconds

        def read(file: sqlite3.Connection) -> StoredResponse | None:
            row = file.execute(f"{FIND} {ONE} AND at >= ?", (*place, since)).fetchone()
            return row and unseal_response(
                StoredResponse(digest=row[0], status=row[1], content_type=row[2], body=row[3]), self._seal)

        return await self._database.read(read)

    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        now, answer = self._clock(), seal_response(answer, self._seal)

        def write(file: sqlite3.Connection) -> None:
            _drop(file, ONE, *place)
            _drop(file, "at < ?", now - self._bounds.seconds)
            file.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*place, now, answer.digest, answer.status, answer.content_type, answer.body),
            )
            number, size = add_to_counter(file, NUMBER, 1), add_to_counter(file, BYTES, len(answer.body))
            while not self._bounds.allow(number, size):
                number, size = _drop(file, OLDEST)

        await self._database.write(write)


def _drop(file: sqlite3.Connection, query: str, *given: object) -> tuple[int, int]:
    """Delete what the query finds; return how many responses are left, and their bytes."""
    gone = file.execute(f"{DROP} {query} RETURNING length(body)", given).fetchall()
    return add_to_counter(file, NUMBER, -len(gone)), add_to_counter(file, BYTES, -sum(size for (size,) in gone))
