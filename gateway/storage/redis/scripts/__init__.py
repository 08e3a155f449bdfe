"""The scripts that run in Redis, each of them a file; a script is called by its digest."""

from functools import cache
from hashlib import sha1
from pathlib import Path


@cache
def scripts(*, sharded: bool = False) -> dict[str, tuple[str, str]]:
    """Name → (digest, text); the scripts of a cluster publish to the node that has the slot of the channel."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.lua")):
        text = path.read_text()
        if sharded:
            text = text.replace("redis.call('PUBLISH'", "redis.call('SPUBLISH'")
        found[path.stem] = sha1(text.encode()).hexdigest(), text  # noqa: S324  # the name Redis gives it, no secret
    return found
