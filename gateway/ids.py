"""Ids, minted in one place, and looked through for repetitions."""

import secrets
from collections.abc import Callable, Iterable
from itertools import count

Mint = Callable[[str], str]
"""Makes a new id with the prefix given."""


def make_mint(stem: str | None = None) -> Mint:
    """Ids for what lives inside sessions: a random stem per process, then a counter; a tenth of a uuid's price."""
    stem, numbers = stem if stem is not None else secrets.token_hex(6), count(1)
    return lambda prefix: f"{prefix}_{stem}{next(numbers):x}"


def random_id(prefix: str) -> str:
    """An id that nobody can count up to: sessions, files, keys."""
    return f"{prefix}_{secrets.token_hex(12)}"


def first_duplicate(names: Iterable[str]) -> str | None:
    """The first that stands there a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
