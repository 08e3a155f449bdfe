"""What can be asked of Redis over a connection, whichever server has the keys."""

import re
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from .connection import Command
from .replies import Reply
from .scripts import scripts

KEYS_PER_SCAN = 1000
"""How many keys Redis looks at before it serves others again."""


class RedisLine(Protocol):
    """Takes commands to Redis, and returns their replies; refusals are among the replies."""

    async def ask(self, *command: str | bytes | int | float) -> Reply:
        """One command and its reply; raises `CommandRefused`."""
    async def ask_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Send several commands in one write."""
    async def ask_synced(self, commands: Sequence[Command]) -> list[Reply]:
        """As `ask_all`; return when so many replicas have what is there now as the address says."""
    async def close(self) -> None: ...


def load_commands(*, sharded: bool = False) -> list[Command]:
    """The commands that load all scripts."""
    return [("SCRIPT", "LOAD", text) for _, text in scripts(sharded=sharded).values()]


def routing_keys(prefix: str) -> tuple[str, str]:
    """The keys that scripts name: one that is always there, and one that never is.

    While a cluster moves their slot, they are not both on one node, so that Redis refuses the script before it begins:
    a script that ran then would stop at the first key that is on the other node.
    """
    return f"{prefix}epoch", f"{prefix}never"


def glob_escaped(word: str) -> str:
    """The pattern that matches this word alone."""
    return re.sub(r"([*?^\[\]\\-])", r"\\\1", word)


class Readable(Protocol):
    """Takes commands that write nothing."""

    async def read_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands; raises `RedisUnreachable`."""


async def scan_keys(redis: Readable, pattern: str) -> AsyncIterator[str]:
    """The keys of a server that match; Redis serves others meanwhile, and may repeat a key."""
    cursor = b"0"
    while True:
        [[cursor, keys]] = await redis.read_all([("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_PER_SCAN)])
        for key in keys:
            yield key.decode(errors="surrogatepass")
        if cursor == b"0":
            return
