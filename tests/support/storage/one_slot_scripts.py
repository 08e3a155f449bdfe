"""The scripts of a cluster, told to Redis in such a way that it refuses one that leaves the slot of its partition."""

from functools import cache
from hashlib import sha1

from gateway.storage.redis import client, lines
from gateway.storage.redis.scripts import scripts

STRICT = "#!lua\n"
"""Without a first line like this one, Redis lets a script use any keys that are on its node."""


@cache
def one_slot_scripts(*, sharded: bool = False) -> dict[str, tuple[str, str]]:
    found = {name: text for name, (_, text) in scripts(sharded=sharded).items()}
    strict = {name: f"{STRICT}{text}" if sharded and not text.startswith("#!") else text
              for name, text in found.items()}
    return {name: (sha1(text.encode()).hexdigest(), text) for name, text in strict.items()}


def hold_scripts_to_one_slot() -> None:
    """From now on, in this process."""
    client.scripts = lines.scripts = one_slot_scripts  # type: ignore[attr-defined]
