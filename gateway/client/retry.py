"""Repeats requests that failed for a reason that may pass, after a wait."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from gateway.errors import ConnectionLost, GatewayError, Overloaded, RateLimited, ServerUnreachable

MAX_RETRY_WAIT = 20.0
"""If an upstream asks for a longer wait in seconds, there is no retry."""
RETRYABLE_ERRORS = (ServerUnreachable, ConnectionLost, RateLimited, Overloaded)
"""Failures that a retry may get past."""
Response = TypeVar("Response")


async def retry(request: Callable[[], Awaitable[Response]], attempts: int) -> Response:
    """The response to a request that the server may receive several times; at most so many attempts are made."""
    attempt = 1
    while True:
        try:
            return await request()
        except GatewayError as error:
            await wait_before_retry(error, attempt, attempts)
        attempt += 1


async def wait_before_retry(error: GatewayError, attempt: int, attempts: int) -> None:
    """Wait before the next attempt; raises the error of this attempt if there is to be no other."""
    wait = requested_wait(error)
    wait = backoff_seconds(attempt) if wait is None else wait
    if not isinstance(error, RETRYABLE_ERRORS) or attempt >= attempts or wait > MAX_RETRY_WAIT:
        raise error
    await asyncio.sleep(wait)


def requested_wait(error: GatewayError) -> float | None:
    """The seconds that the server wants us to wait; None if it wants no wait."""
    found = (error.details or {}).get("retry_after", error.retry_after)
    return found if isinstance(found, int | float) else None


def backoff_seconds(failures: int) -> float:
    """The seconds to wait after so many failures: twice as many each time, and not the same for all clients."""
    return random.uniform(0.2, 0.4) * 2.0 ** failures  # noqa: S311  # no secret
