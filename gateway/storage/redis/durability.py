"""Checks that a Redis server stores what it is given as durably as the settings ask."""

import structlog

from ..sqlite import StorageUnusable
from .address import RedisAddress
from .lines import RedisLine
from .replies import Reply

log = structlog.get_logger("dragoman.redis")


async def check_durability(line: RedisLine, address: RedisAddress, fsync: bool) -> None:
    """Raise `StorageUnusable` if the server cannot do what `fsync` promises; warn of settings that lose data."""
    replies = await line.ask_all([
        ("COMMAND", "INFO", "WAITAOF"), ("INFO", "server"), ("INFO", "persistence"), ("INFO", "memory"),
        ("CONFIG", "GET", "appendfsync"),
    ])
    words = _info_fields(*replies[1:])
    if fsync and not (isinstance(replies[0], list) and replies[0] and replies[0][0]):
        raise StorageUnusable(
            f"durability: fsync needs a server that can wait for its disk (WAITAOF: Redis 7.2, Valkey); the one at "
            f"{address.shown} is version {words.get('redis_version', 'unknown')}; take a newer one, or "
            f"set `durability: normal`"
        )
    if fsync and words.get("aof_enabled") == "0":
        raise StorageUnusable(
            f"durability: fsync needs `appendonly yes`, and {address.shown} has it off; switch it on, or set "
            f"`durability: normal`"
        )
    if fsync and replies[4] == [b"appendfsync", b"no"]:  # not everybody may ask for it
        raise StorageUnusable(
            f"durability: fsync needs `appendfsync everysec` or `always`, and {address.shown} has `no`, with "
            f"which it never tells what is on its disk; change it, or set `durability: normal`"
        )
    if words.get("aof_enabled") == "0" and (address.sentinels or address.nodes):
        log.warning("redis_forgets_at_restart", server=address.shown,
                    advice="a primary that restarts empty empties its replicas, too; set appendonly yes")
    if words.get("maxmemory_policy", "noeviction") != "noeviction":
        log.warning("redis_may_evict_data", policy=words["maxmemory_policy"],
                    advice="sessions may be lost when the memory is full; set maxmemory-policy noeviction")


def _info_fields(*replies: Reply) -> dict[str, str]:
    """The fields of INFO."""
    lines = b"\n".join(reply for reply in replies if isinstance(reply, bytes)).decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)
