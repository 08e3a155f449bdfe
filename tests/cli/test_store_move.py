"""`dragoman log move`: everything of one Redis is in another one afterwards, and a server goes on there."""

import re
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import gateway.model as m
from gateway.app import Gateway
from gateway.ports import SessionFilter
from gateway.storage import StorageUnusable
from gateway.storage.redis import RedisAddress, RedisClient, RedisPartitions, SharedRedis, StoreMove
from gateway.storage.redis.client import MOVING_FORMAT
from gateway.storage.redis.scripts import scripts
from tests.cli.test_purge import WORD, fill
from tests.simulation import simulated
from tests.support.gateway_server import serving, until
from tests.support.redis_server import cluster_url, redis_of_this_run

Run = Callable[..., Result]
USERS = ("ada", "bob")
MOVED = {"s", "log", "words", "resource", "answers", "answers.sizes", "answers.times", "keys", "keys.used",
         "keys.version", "answers.count", "resources.ordinal", "lists", "weights", "ordinal", "timed"}
FOLLOWS = {"sessions", "owner", "times", "created", "updated", "createdlist", "updatedlist", "places", "open", "all",
           "live", "below", "kept", "resources.kept", "answers.order", "answers.bytes", "replicas"}
"""What is written with what is moved."""
BUILT_ANEW = {"said", "searched", "unindexed", "term", "terms", "indexed", "untimed"}
OF_SERVERS = {"epoch", "format", "partition", "synced", "replica", "dead", "leader", "drain", "claim", "tokens", "news",
              "to"}


def one_server() -> str:
    return f"{redis_of_this_run().url}?prefix={secrets.token_hex(4)}"


def cluster(partitions: int) -> str:
    return cluster_url(secrets.token_hex(4), partitions)


def client(log: str) -> SharedRedis:
    address = RedisAddress.read(log)
    return RedisPartitions(address) if address.nodes else RedisClient(address)


def test_every_key_is_moved_or_known() -> None:
    words = {word for _, text in scripts().values() for word in re.findall(r"P \.\. '([a-z.]+)", text)}
    folder = Path(__file__).parents[2] / "gateway"
    for path in folder.rglob("*.py"):
        words.update(re.findall(r"\.key\(f?\"([a-z.]+)", path.read_text()))
    assert words - MOVED - FOLLOWS - BUILT_ANEW - OF_SERVERS == set()


async def filled(folder: Path, log: str) -> dict[str, Any]:
    """Two users with something of every kind, several sessions, and one that waits for an answer."""
    async with serving(folder, log=log, auth="keys") as served:
        gateway = served.gateway
        for user in USERS:
            await fill(gateway, user, f"{WORD}{user}")
            for number in range(8):
                made = await gateway.sessions.create(user, "demo", title=f"number {number}")
                await gateway.sessions.submit(user, made.session_id, [m.SendMessage(content=f"hello {number}")])
            await until(lambda: not gateway.table.turn_count)
        waiting = await gateway.sessions.create("ada", "demo", title="waits")
        await gateway.sessions.submit("ada", waiting.session_id, [m.SendMessage(content="/ask")])
        await until(lambda: bool(gateway.table.get(waiting.session_id).view.asks))  # type: ignore[union-attr]
        return await seen(gateway, log)


async def seen(gateway: Gateway, log: str) -> dict[str, Any]:
    """What users see of what they have."""
    found: dict[str, Any] = {}
    for user in USERS:
        heads = await gateway.runtime.log.sessions(user, limit=100)
        listed = await gateway.runtime.log.listed(user, "", "updated", limit=100)
        found[user] = {
            "heads": [(head.session_id, head.ordinal, head.head, head.in_turn) for head in heads],
            "listed": sorted(listed, key=lambda one: (one.summary.updated_at, one.ordinal)),
            "records": [await gateway.runtime.log.read(head.session_id) for head in heads],
            "mentioned": [one.session_id for one in (await gateway.sessions.find(
                user, SessionFilter(text=f"{WORD}{user}")))[0]],
            "resources": [
                await gateway.resources.versions(kind, user, one.resource_id)
                for kind in sorted((await gateway.resources.owners())[user])
                for one in await gateway.resources.list(kind, user, archived=True)],
            "live": len(await gateway.resources.list("agent", user)),
            "answer": await gateway.answers.find((user, "POST", f"/{WORD}{user}", f"{WORD}{user}")),
            "keys": [key.name for key in await gateway.keys.of(user)], "kept": await kept(log, user)}
    return found


async def kept(log: str, user: str) -> tuple[int, int]:
    """How many resources and bytes the user has, as the quotas count them."""
    redis = client(log)
    rows: list[Sequence[bytes | None]] = [
        (await part.read_all([("HMGET", part.key("kept", user), "resources", "bytes")]))[0] for part in redis.parts]
    await redis.close()
    return sum(int(one[0] or 0) for one in rows), sum(int(one[1] or 0) for one in rows)


@pytest.mark.parametrize(("source", "target"), [
    (one_server, lambda: cluster(4)), (lambda: cluster(4), one_server), (lambda: cluster(2), lambda: cluster(8)),
])
def test_users_find_everything_again_and_a_turn_that_waits_goes_on(
    dragoman: Run, tmp_path: Path, source: Callable[[], str], target: Callable[[], str],
) -> None:
    before, after = source(), target()
    had = simulated(filled(tmp_path, before))
    moving = ("log", "move", "--to", after, "--config", str(tmp_path / "config.yaml"))
    dry = dragoman(*moving, "--dry-run")
    counts = "19 sessions, 8 resources, 2 stored responses, 2 keys"
    assert (dry.exit_code, dry.stdout) == (0, f"would move {counts}\n"), dry.output
    done = dragoman(*moving)
    assert (done.exit_code, done.stdout) == (0, f"moved {counts}\n"), done.output
    again = dragoman(*moving)
    assert (again.exit_code, "has data of Dragoman; empty it" in again.stderr) == (2, True), again.output

    async def go_on() -> None:
        async with serving(tmp_path, log=after, auth="keys") as served:
            gateway = served.gateway
            now = await seen(gateway, after)
            for user in USERS:
                for name, value in had[user].items():
                    assert now[user][name] == value, name
            session_id = had["ada"]["heads"][0][0]
            view = await gateway.sessions.get("ada", session_id)
            [ask] = view.asks
            await gateway.sessions.submit("ada", session_id, [m.AnswerQuestion(
                request_id=ask, selections={"0": (0,), "1": (0,)})])
            await until(lambda: not gateway.table.turn_count)
            assert (await gateway.sessions.get("ada", session_id)).status is m.SessionStatus.IDLE
            new = await gateway.sessions.create("ada", "demo")
            assert (await gateway.runtime.log.sessions("ada", limit=1))[0].session_id == new.session_id
            for head in await gateway.runtime.log.sessions("bob", limit=100):
                await gateway.sessions.delete("bob", head.session_id)
            for kind in (await gateway.resources.owners())["bob"]:
                for one in await gateway.resources.list(kind, "bob", archived=True):
                    await gateway.resources.delete(kind, "bob", one.resource_id)
            assert await kept(after, "bob") == (0, 0)

    simulated(go_on())


def test_nothing_is_moved_while_a_server_runs(tmp_path: Path) -> None:
    before, after = one_server(), cluster(2)

    async def move() -> None:
        async with serving(tmp_path, log=before):
            source, target = client(before), client(after)
            with pytest.raises(Exception, match="1 servers use redis://"):
                await StoreMove(source, target).run()
            await source.close()
            await target.close()

    simulated(move())


def test_a_move_that_was_interrupted_keeps_servers_away_and_begins_anew(dragoman: Run, tmp_path: Path) -> None:
    before, after = one_server(), cluster(4)
    had = simulated(filled(tmp_path, before))

    async def stop_halfway() -> None:
        def stop(done: int, total: int) -> None:
            if done > total / 2:
                raise KeyboardInterrupt

        source, target = client(before), client(after)
        with pytest.raises(KeyboardInterrupt):
            await StoreMove(source, target, stop).run()
        for part in target.parts:
            assert await part.read_all([("GET", part.key("format"))]) == [MOVING_FORMAT.encode()]
        with pytest.raises(StorageUnusable, match="`dragoman log move` has not ended"):
            await target.open()
        await source.close()
        await target.close()

    simulated(stop_halfway())
    done = dragoman("log", "move", "--to", after, "--config", str(tmp_path / "config.yaml"))
    assert done.exit_code == 0, done.output

    async def look() -> None:
        async with serving(tmp_path, log=after, auth="keys") as served:
            assert [[head[0] for head in one["heads"]] for one in (await seen(served.gateway, after)).values()] == [
                [head[0] for head in one["heads"]] for one in had.values()]

    simulated(look())


@pytest.mark.parametrize(("words", "told"), [
    (("--from", "sqlite", "--to", "redis://localhost"), "both must be a Redis"),
    (("--from", "redis://localhost", "--to", "redis://localhost"), "are the same address"),
    (("--from", "redis://localhost", "--to", "redis+cluster://h?partitions=3"), "power of two"),
])
def test_addresses_that_cannot_be_are_refused(dragoman: Run, words: Sequence[str], told: str) -> None:
    done = dragoman("log", "move", *words)
    assert (done.exit_code, told in done.stderr) == (2, True), done.output
