"""How long somebody else's server is waited for, and after which failures it is tried again."""

import asyncio
import random
from dataclasses import dataclass

from gateway.errors import GatewayError, Overloaded, RateLimited

from .failures import Cut, Unreachable

LONGEST_WAIT = 20.0
"""An upstream that wants us to wait longer than this is not tried again."""
PASSING = (Unreachable, Cut, RateLimited, Overloaded)
"""Failures that may be over in a moment."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long an upstream is waited for, in seconds, and how often it is tried before it has said anything.

    `first_byte` is for the beginning of an answer, `idle` for each further piece of it, `total` for one attempt.
    """

    connect: float = 10.0
    first_byte: float = 60.0
    idle: float = 60.0
    total: float = 600.0
    attempts: int = 3


async def wait_or_raise(error: GatewayError, attempt: int, attempts: int) -> None:
    """Until it is time for the next attempt; raises what this one came to where there should be none."""
    wait = (error.details or {}).get("retry_after", random.uniform(0.2, 0.4) * 2 ** attempt)  # noqa: S311  # no secret
    if not isinstance(error, PASSING) or attempt >= attempts or wait > LONGEST_WAIT:
        raise error
    await asyncio.sleep(wait)
