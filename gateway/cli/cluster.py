"""`dragoman cluster`: the servers that share a Redis, and one of them drained."""

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from .options import CommandGroup, ConfigFile, fail, load_settings, report_errors, write_audit_line

if TYPE_CHECKING:
    from gateway.cluster import ClusterView, ReplicaView
    from gateway.config import Config

POLL_SECONDS = 0.2
HEADINGS = ("ID", "NAME", "STATE", "SESSIONS", "TURNS", "STREAMS", "LEASE", "REDIS", "FAILOVERS", "SINCE")

cluster = typer.Typer(
    cls=CommandGroup, no_args_is_help=True,
    help="Show the servers that share a Redis, and drain one. Example: [b]dragoman cluster status[/b]",
)


@cluster.command("status")
def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    config: ConfigFile = None,
) -> None:
    """List the servers: the sessions that each holds, its turns, streams, lease, and how long Redis takes.

    Example: [b]dragoman cluster status[/b] or [b]dragoman cluster status --json[/b]

    The numbers are those of the last renewal of each lease, a few seconds old.
    """
    with report_errors():
        view = asyncio.run(_read(_shared_settings(config)))
    if as_json:
        from gateway.cluster import encode_view

        typer.echo(encode_view(view))
        return
    typer.echo(f"{view.redis}: {view.sessions} sessions, {view.open_turns} of them in a turn")
    rows = [HEADINGS, *map(_row, view.replicas)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip())


def _row(one: "ReplicaView") -> tuple[str, ...]:
    told = one.report
    since = str(timedelta(seconds=round(time.time() - told.started_at))) if told.started_at else "-"
    if not one.lives:
        left = f"dead, {one.open_turns} turns left"
        return (one.id, "-", left, *["-"] * (len(HEADINGS) - 3))
    return (
        one.id, told.name or "-", _state(one), str(told.sessions), str(told.turns), str(told.streams),
        f"{one.lease_ms / 1000:.1f} s", f"{told.redis_ms:.1f} ms", str(told.failovers), since,
    )


def _state(one: "ReplicaView") -> str:
    if one.report.is_draining:
        return "draining"
    if one.is_to_drain:
        return "asked to drain"
    return "leads" if one.leads else "ready"


@cluster.command("drain")
def drain(
    replica: Annotated[str, typer.Argument(metavar="REPLICA", help="Its name, its id, or how its id begins.")],
    config: ConfigFile = None,
) -> None:
    """Let a server hand its sessions over, finish its turns and stop, as SIGTERM does.

    Example: [b]dragoman cluster drain gateway-2:18900[/b]

    Its turns may run for `limits.drain_seconds`; then they end with a fault. Whatever starts servers may start it
    again. The command returns when the server has begun.
    """
    with report_errors():
        chosen = _shared_settings(config)
        found = asyncio.run(_drain(chosen, replica))
        write_audit_line(chosen, "replica.drained", f"{found.id} ({found.report.name})")
    seconds = chosen.limits.drain_seconds
    typer.echo(f"{found.id} ({found.report.name}) drains, and stops within {seconds:g} s.", err=True)


async def _drain(config: "Config", named: str) -> "ReplicaView":
    from gateway.cluster import ask_to_drain, find_replica
    from gateway.errors import TimedOut
    from gateway.storage_factory import make_redis

    found = find_replica(await _read(config), named)
    redis = make_redis(config)
    try:
        await ask_to_drain(redis, found.id)
    finally:
        await redis.close()
    until = time.monotonic() + 2 * config.limits.lease_seconds
    while time.monotonic() < until:
        now = next((one for one in (await _read(config)).replicas if one.id == found.id), None)
        if now is None or not now.lives or now.report.is_draining:
            return found
        await asyncio.sleep(POLL_SECONDS)
    raise TimedOut(f"{found.id} was asked to drain and has not begun; it may be of an older release: send it SIGTERM")


async def _read(config: "Config") -> "ClusterView":
    from gateway.cluster import read_cluster
    from gateway.storage_factory import make_redis

    redis = make_redis(config)
    try:
        return await read_cluster(redis)
    finally:
        await redis.close()


def _shared_settings(config: "ConfigFile") -> "Config":
    chosen = load_settings(config)
    if "://" not in chosen.log:
        fail(f"the settings say `log: {chosen.log}`, which one server uses alone: a cluster shares a Redis")
    return chosen
