"""What an operator sees of a cluster, and asks of its servers: through Redis, without a server that answers."""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from gateway.errors import NotFound
from gateway.storage.redis import RedisClient, Reply, SharedRedis

DRAIN_ASKED_MS = 600_000
"""For how long a server is asked to drain that does not come to it."""


class ReplicaReport(Struct, frozen=True, kw_only=True):
    """What a server writes of itself each time that it renews its lease."""

    name: str = ""
    """Its host and port."""
    started_at: float = 0.0
    sessions: int = 0
    """How many sessions it holds: it writes them, and has them in memory."""
    turns: int = 0
    streams: int = 0
    redis_ms: float = 0.0
    """How many milliseconds Redis took for the renewal before this one."""
    failovers: int = 0
    """How many times it has seen another Redis server become the primary."""
    is_draining: bool = False


class ReplicaView(Struct, frozen=True, kw_only=True):
    """A server as Redis knows it."""

    id: str
    lives: bool
    leads: bool
    lease_ms: int
    """How long its lease is still good."""
    open_turns: int
    """How many sessions it has in a turn; if it does not live, the others take them over."""
    is_to_drain: bool
    report: ReplicaReport


class ClusterView(Struct, frozen=True, kw_only=True):
    """All servers that share a Redis."""

    redis: str
    sessions: int
    open_turns: int
    replicas: list[ReplicaView]


encode_report = msgspec.json.Encoder().encode
encode_view = msgspec.json.Encoder(decimal_format="number").encode
_decode_report = msgspec.json.Decoder(ReplicaReport).decode


async def read_cluster(redis: SharedRedis) -> ClusterView:
    """The servers that share this Redis; raises `NotFound` if none has stored anything there."""
    await redis.check_has_data()
    first = redis.parts[0]
    counts = await asyncio.gather(*(
        part.read_all([
            ("SMEMBERS", part.key("replicas")), ("ZCARD", part.key("sessions")), ("ZCARD", part.key("open"))])
        for part in redis.parts))
    ids = sorted({name.decode() for names, _, _ in counts for name in names})
    rows = await asyncio.gather(*(_rows(part, ids) for part in redis.parts))
    [leader] = await first.read_all([("GET", first.key("leader"))])
    found = []
    for at, one in enumerate(ids):
        (told, lease_ms, _, drains), turns = rows[0][at], sum(part[at][2] for part in rows)
        found.append(_replica(one, leader, (told, lease_ms, turns, drains)))
    return ClusterView(
        redis=redis.address.shown, sessions=sum(one for _, one, _ in counts),
        open_turns=sum(one for _, _, one in counts), replicas=found)


async def _rows(part: RedisClient, ids: Sequence[str]) -> list[Sequence[Reply]]:
    """What a part of Redis has of these servers: report, lease, sessions in a turn, whether one is to drain."""
    asked = [
        (command, part.key(word, one)) for one in ids
        for command, word in (("GET", "replica"), ("PTTL", "replica"), ("SCARD", "open"), ("EXISTS", "drain"))]
    replies = await part.read_all(asked) if asked else []
    return [replies[at:at + 4] for at in range(0, len(replies), 4)]


def _replica(replica: str, leader: bytes | None, row: Sequence[Reply]) -> ReplicaView:
    told, lease_ms, open_turns, drains = row
    return ReplicaView(
        id=replica, lives=told is not None, leads=leader == replica.encode(), lease_ms=max(0, lease_ms),
        open_turns=open_turns, is_to_drain=bool(drains), report=_report(told),
    )


def _report(told: bytes | None) -> ReplicaReport:
    """What the server has reported; a server of an older release reports nothing."""
    return _decode_report(told) if told is not None and told.startswith(b"{") else ReplicaReport()


def find_replica(view: ClusterView, named: str) -> ReplicaView:
    """The server with this name, or whose id begins so; raises `NotFound`."""
    living = [one for one in view.replicas if one.lives]
    found = [one for one in living if named and (one.report.name == named or one.id.startswith(named))]
    if len(found) != 1:
        known = ", ".join(f"{one.id} ({one.report.name})" for one in living) or "none"
        why = "several servers are called" if found else "there is no living server"
        raise NotFound(f"{why} '{named}'; name the id of one: {known}")
    return found[0]


async def ask_to_drain(redis: SharedRedis, replica: str) -> None:
    """Ask a server to drain and stop; raises `NotFound` if it does not live."""
    await redis.open()
    if not await redis.parts[0].run_script("ask_drain", replica, DRAIN_ASKED_MS):
        raise NotFound(f"the server {replica} has just gone")
