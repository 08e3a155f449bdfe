"""Token buckets that limit the requests of each key, and the wrong keys of each address."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_network
from typing import Protocol

from aiohttp import web

from gateway.errors import GatewayError, RateLimited, Unauthenticated
from gateway.logging import get_logger
from gateway.ports import TokenBuckets
from gateway.quotas import LimitRefusals
from gateway.supervision import take_error

from .auth import OWNER, Handler, bearer_token

log = get_logger("dragoman.rates")

SHARED_GRANT_SECONDS = 0.05
"""If several servers share a bucket, a server takes the tokens of so many seconds at once."""
LOCAL_COUNT_SECONDS = 1.0
"""Seconds in which a server counts alone after the shared store failed."""
MAX_REMEMBERED = 10_000
"""The number of addresses and of valid keys that are remembered."""
IPV6_BITS = 64
"""IPv6 addresses with so many equal bits count as one: they belong to one customer."""
REQUESTS_LIMIT = "requests_per_second"


SHOWN_TOKEN = web.RequestKey("token", str)
"""The key of a request, valid or not."""


class RateSettings(Protocol):
    """The rate limit of one key."""

    @property
    def requests_per_second(self) -> float | None: ...
    @property
    def request_burst(self) -> int: ...


class LocalTokenBuckets:
    """Buckets by name; a bucket that is full again is forgotten."""

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}
        """The tokens of a bucket, and the time of that number."""

    def __len__(self) -> int:
        return len(self._left)

    def left(self, name: str, rate: float, size: float, now: float) -> float:
        found = self._left.get(name)
        return size if found is None else min(size, found[0] + (now - found[1]) * rate)

    def take(self, name: str, rate: float, size: float, now: float) -> float:
        """Take a token; return the seconds to wait if there is none."""
        left = self.left(name, rate, size, now)
        if left < 1:
            return (1 - left) / rate
        self._left[name] = left - 1, now
        if len(self._left) > MAX_REMEMBERED:
            self._tidy(rate, size, now)
        return 0.0

    def _tidy(self, rate: float, size: float, now: float) -> None:
        self._left = {name: found for name, found in self._left.items() if self.left(name, rate, size, now) < size}
        while len(self._left) > MAX_REMEMBERED:
            del self._left[next(iter(self._left))]


class RateLimiter:
    """Takes a token for each request of a key, from a local bucket or from one that several servers share."""

    def __init__(
        self, pace: Callable[[], RateSettings], wrong_keys: "WrongKeyLimiter", shared: TokenBuckets | None = None,
        refusals: LimitRefusals | None = None,
    ) -> None:
        self._pace = pace
        self._wrong_keys = wrong_keys
        self._shared = shared
        self._buckets = LocalTokenBuckets()
        self._at_hand: dict[str, int] = {}
        """Tokens that were taken from a shared bucket and are not used yet."""
        self._asking: dict[str, asyncio.Future[float]] = {}
        self._alone_until = 0.0
        self.requests: dict[str, int] = {}
        """The number of requests by owner."""
        self._refusals = LimitRefusals() if refusals is None else refusals

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count the request; this middleware runs after authentication."""
        if (owner := request.get(OWNER)) is not None:
            if token := request.get(SHOWN_TOKEN):
                self._wrong_keys.remember_right(token)
            await self.count_request(owner)
        return await handler(request)

    async def count_request(self, owner: str) -> None:
        """Count a request of HTTP or of a socket; raises `RateLimited`."""
        self.requests[owner] = self.requests.get(owner, 0) + 1
        pace = self._pace()
        rate = pace.requests_per_second
        if rate is None:
            return
        now = asyncio.get_running_loop().time()
        if self._shared is None or now < self._alone_until:
            wait = self._buckets.take(owner, rate, pace.request_burst, now)
        else:
            wait = await self._take_shared(owner, rate, pace.request_burst, self._shared)
        if wait:
            self._refusals.count(owner, REQUESTS_LIMIT)
            raise rate_limited(f"you may send {rate:g} requests a second, and {pace.request_burst} at once", wait)

    async def _take_shared(self, owner: str, rate: float, size: int, shared: TokenBuckets) -> float:
        """Use a token that was taken in advance; if there is none, one waiting request fetches tokens for all."""
        while not self._at_hand.get(owner):
            asking = self._asking.get(owner)
            if asking is None:
                asking = self._asking[owner] = asyncio.ensure_future(self._ask(owner, rate, size, shared))
                asking.add_done_callback(lambda done: self._asking.pop(owner, None))
                asking.add_done_callback(take_error)
            if wait := await asyncio.shield(asking):
                return wait
            if asyncio.get_running_loop().time() < self._alone_until:
                return 0.0
        self._at_hand[owner] -= 1
        return 0.0

    async def _ask(self, owner: str, rate: float, size: int, shared: TokenBuckets) -> float:
        try:
            granted, wait = await shared.grant(
                owner, rate, size, max(1, min(size // 10, int(rate * SHARED_GRANT_SECONDS)))
            )
        except GatewayError as error:  # such requests are served: operations that need the store fail there
            log.warning("rate_limit_store_unavailable", error=error.message)
            self._alone_until = asyncio.get_running_loop().time() + LOCAL_COUNT_SECONDS
            return 0.0
        self._at_hand[owner] = self._at_hand.get(owner, 0) + granted
        return 0.0 if granted else wait


class WrongKeyLimiter:
    """Refuses addresses that have sent too many wrong keys for a while, except for keys that were valid before."""

    def __init__(self, per_minute: Callable[[], int]) -> None:
        self._per_minute = per_minute
        self._buckets = LocalTokenBuckets()
        self._right: dict[int, None] = {}
        """Hashes of keys that were valid lately: their clients are not refused for a neighbour on the same address."""
        self._wrong: dict[int, None] = {}
        self.count = 0

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Limit wrong keys; this middleware runs before authentication, and only if there are keys."""
        token, address = bearer_token(request), request.remote
        self.check(address, token)
        request[SHOWN_TOKEN] = token or ""
        try:
            return await handler(request)
        except Unauthenticated:
            self.remember_wrong(address, token)
            raise

    @contextmanager
    def track_attempt(self, address: str | None, token: str | None) -> Iterator[None]:
        """Limit wrong keys in this block, which checks a key that did not come in a header."""
        self.check(address, token)
        try:
            yield
        except Unauthenticated:
            self.remember_wrong(address, token)
            raise
        if token:
            self.remember_right(token)

    def check(self, address: str | None, token: str | None) -> None:
        if not self._buckets or not token or hash(token) in self._right:
            return
        most = self._per_minute()
        left = self._buckets.left(_client_network(address), most / 60, most, asyncio.get_running_loop().time())
        if left < 1:
            raise rate_limited("too many wrong keys came from this address", (1 - left) * 60 / most)

    def remember_wrong(self, address: str | None, token: str | None) -> None:
        """Take a token for a wrong key; a client that repeats one old key does not guess."""
        self.count += bool(token)
        if token and _remember(self._wrong, hash(token)):
            most = self._per_minute()
            self._buckets.take(_client_network(address), most / 60, most, asyncio.get_running_loop().time())

    def remember_right(self, token: str) -> None:
        _remember(self._right, hash(token))


WRONG_KEY_LIMITER: web.AppKey[WrongKeyLimiter] = web.AppKey("wrong_keys", WrongKeyLimiter)


def retry_after_seconds(error: GatewayError, otherwise: int) -> int:
    """Return the value of `Retry-After`: whole seconds, at least one."""
    return otherwise if error.retry_after is None else max(1, math.ceil(error.retry_after))


def rate_limited(why: str, wait: float) -> RateLimited:
    """Return the error for a client that must wait; its text has the seconds, because a socket has no header."""
    error = RateLimited(why, retry_after=wait)
    seconds = retry_after_seconds(error, 1)
    error.message = f"{why}; try again in {seconds} second{'' if seconds == 1 else 's'}"
    error.details = {"retry_after": seconds}
    return error


def _remember(known: dict[int, None], word: int) -> bool:
    """Remember the word, and return whether it is new; the oldest word is forgotten."""
    if word in known:
        return False
    known[word] = None
    if len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
    return True


def _client_network(address: str | None) -> str:
    if address is None or ":" not in address:
        return address or ""
    try:
        plain = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if plain.ipv4_mapped is not None:
        return str(plain.ipv4_mapped)
    return str(ip_network((plain, IPV6_BITS), strict=False))
