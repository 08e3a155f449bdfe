"""The responses to requests with an idempotency key, in Redis, and who executes such a request."""

import asyncio

import msgspec

from gateway.errors import OutcomeUnknown
from gateway.ports import Clock, IdempotencyKey, StoredResponse
from gateway.storage.redis import RedisFull, RedisUnreachable, SharedRedis
from gateway.storage.sealing import UNSEALED, Seal

from .redis import SEPARATOR
from .responses import DEFAULT_RESPONSE_LIMITS, ResponseLimits, seal_response, unseal_response

_answer = msgspec.msgpack.Decoder(tuple[float, str, int, str, bytes]).decode
CLAIM_LEASES = 2
"""For how many leases a server claims an idempotency key: a request that takes longer may be executed twice."""


class RedisResponses:
    """Responses in Redis: a request that is sent twice may reach two servers."""

    def __init__(
        self, redis: SharedRedis, clock: Clock, bounds: ResponseLimits = DEFAULT_RESPONSE_LIMITS, seal: Seal = UNSEALED,
    ) -> None:
        self._redis = redis
        self._clock = clock
        self._bounds = bounds
        self._seal = seal

    async def claim(self, place: IdempotencyKey) -> None:
        """Wait for the server that executes a request with this key, for as long as its claim lasts."""
        given = self._redis.replica, SEPARATOR.join(place), round(1000 * CLAIM_LEASES * self._redis.lease)
        part = self._redis.part_of(given[1])
        while not await part.run_script("claim_key", *given):  # noqa: ASYNC110  # another process has the key
            await asyncio.sleep(self._redis.lease / 100)

    async def release(self, place: IdempotencyKey) -> None:
        word = SEPARATOR.join(place)
        await self._redis.part_of(word).run_script("release_key", self._redis.replica, word)

    async def find(self, place: IdempotencyKey) -> StoredResponse | None:
        word = SEPARATOR.join(place)
        part = self._redis.part_of(word)
        found = (await part.read_all([("HGET", part.key("answers"), word)]))[0]
        if found is None:
            return None
        at, digest, status, content_type, body = _answer(found)
        if at < self._clock() - self._bounds.seconds:
            return None
        return unseal_response(
            StoredResponse(digest=digest, status=status, content_type=content_type, body=body), self._seal
        )

    async def store(self, place: IdempotencyKey, answer: StoredResponse) -> None:
        """Store the response, again if its reply is lost; raises `OutcomeUnknown` when the claim has run out."""
        now, bounds, answer = self._clock(), self._bounds, seal_response(answer, self._seal)
        word, parts = SEPARATOR.join(place), len(self._redis.parts)
        kept = msgspec.msgpack.encode((now, answer.digest, answer.status, answer.content_type, answer.body))
        try:
            async with asyncio.timeout(CLAIM_LEASES * self._redis.lease):
                while True:
                    try:
                        await self._redis.part_of(word).run_script(
                            "answer", word, now, now - bounds.seconds, -(-bounds.most // parts),
                            -(-bounds.most_bytes // parts), len(answer.body), kept)
                        return
                    except RedisFull:
                        raise
                    except RedisUnreachable:
                        await asyncio.sleep(self._redis.lease / 100)
        except TimeoutError:
            raise OutcomeUnknown(
                "the request was executed, and its response could not be stored: Redis cannot be reached; look at what "
                "it has done before you send it again") from None
