"""`dragoman purge` on Redis, with servers that run and without: one user goes everywhere, the others stay."""

import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from typer.testing import Result
from yarl import URL

import gateway.model as m
from gateway.app import Gateway
from gateway.config import RetentionSettings, load_config
from gateway.errors import Conflict, NotFound
from gateway.ports import SessionFilter
from gateway.purge import UserPurge, delete_expired
from tests.cli.test_purge import FIRST, WORD, fill, words_in
from tests.simulation import simulated
from tests.support.gateway_server import serving
from tests.support.redis_server import cluster_url, redis_of_this_run

Run = Callable[..., Result]


@pytest.fixture(params=["redis", "cluster"])
def address(request: pytest.FixtureRequest) -> str:
    """The address of a Redis, with a prefix of its own. The names of users are long: ids have short ones by chance."""
    prefix = secrets.token_hex(4)
    return cluster_url(prefix) if request.param == "cluster" else f"{redis_of_this_run().url}?prefix={prefix}"


def names_in(address: str, *words: str) -> list[str]:
    """The keys of this prefix with one of the words, in their names or in their values."""
    place = URL(address)
    client = redis.Redis(port=place.port or 0)
    found = list[str]()
    for key in client.scan_iter(f"*{place.query['prefix']}*"):
        match client.type(key):
            case b"string":
                value: object = client.get(key)
            case b"hash":
                value = client.hgetall(key)
            case b"set":
                value = client.smembers(key)
            case b"zset":
                value = client.zrange(key, 0, -1)
            case b"stream":
                value = client.xrange(key)
            case other:
                raise AssertionError(other)
        if any(word in f"{key!r} {value!r}" for word in words):
            found.append(key.decode())
    client.close()
    return sorted(found)


async def test_a_user_is_erased_beside_running_servers_and_others_keep_everything(
    tmp_path: Path, address: str,
) -> None:
    settings = {"log": address, "auth": "keys"}
    async with serving(tmp_path, **settings) as first, serving(tmp_path, **settings) as second:
        ids = {user: await fill(first.gateway, user, f"{WORD}{user}") for user in ("wilhelmina", "zoroaster")}
        running = await first.gateway.sessions.create("wilhelmina", "demo")
        await first.gateway.sessions.submit("wilhelmina", running.session_id, [m.SendMessage(content="/slow 6000")])
        await second.gateway.sessions.get("wilhelmina", running.session_id)
        purged = UserPurge(load_config(tmp_path / "config.yaml"), "wilhelmina")
        assert await purged.counts() == {
            "session": 2, "agent": 1, "file": 1, "note": 1, "key": 1, "stored response": 1}
        await purged.export(tmp_path / "out")
        before = names_in(address, "zoroaster", ids["zoroaster"])
        assert await purged.erase(), "Redis writes its file anew"
        assert names_in(address, "wilhelmina", ids["wilhelmina"], running.session_id) == []
        assert names_in(address, "zoroaster", ids["zoroaster"]) == before
        for server in (first.gateway, second.gateway):
            for session_id in (running.session_id, ids["wilhelmina"]):
                with pytest.raises(NotFound):
                    await server.sessions.get("wilhelmina", session_id)
            assert (await server.sessions.get("zoroaster", ids["zoroaster"])).title == f"{WORD}zoroaster title"
        assert not first.gateway.table.turn_count, "the turn that ran has ended"
        assert (await second.gateway.sessions.find("zoroaster", SessionFilter(text=f"{WORD}zoroaster")))[1] == 1
        assert await purged.counts() == {}
        assert [len(await second.gateway.keys.of(user)) for user in ids] == [0, 1]
    data = tmp_path / "data"
    assert words_in(data, f"{WORD}wilhelmina") == ["audit.jsonl"]
    assert (data / "workspaces" / ids["zoroaster"] / "notes.txt").exists()
    assert f"say {WORD}wilhelmina" in (tmp_path / "out" / "sessions.jsonl").read_text()
    assert "zoroaster" not in (tmp_path / "out" / "sessions.jsonl").read_text()


async def test_a_user_who_goes_on_is_not_said_to_be_erased(tmp_path: Path, address: str) -> None:
    (tmp_path / "data").mkdir()
    async with serving(tmp_path, log=address) as served:
        await served.gateway.sessions.create("wilhelmina", "demo")
        purged = UserPurge(load_config(tmp_path / "config.yaml"), "wilhelmina")
        deleted = purged._delete_all

        async def delete_and_begin_anew(gateway: Gateway) -> None:
            await deleted(gateway)
            await served.gateway.sessions.create("wilhelmina", "demo")

        purged._delete_all = delete_and_begin_anew  # type: ignore[method-assign]
        with pytest.raises(Conflict, match="take the user's access away"):
            await purged.erase()
        assert (await purged.counts()) == {"session": 1}


async def test_what_is_old_goes_beside_a_running_server_but_not_a_session_in_a_turn(
    tmp_path: Path, address: str,
) -> None:
    async with serving(tmp_path, lambda: FIRST, log=address) as served:
        old = await fill(served.gateway, "wilhelmina", f"{WORD}wilhelmina")
        busy = await served.gateway.sessions.create("wilhelmina", "demo")
        await served.gateway.sessions.submit("wilhelmina", busy.session_id, [m.SendMessage(content="/ask")])
        config = load_config(tmp_path / "config.yaml")
        rules = RetentionSettings.model_validate({"sessions": {"days": 30}, "files": {"days": 30}})
        shown = await delete_expired(config, rules, is_dry=True)
        assert sorted(one.kind for one in shown) == ["file", "session"]
        assert len(await served.gateway.runtime.log.sessions("wilhelmina")) == 2
        assert await delete_expired(config, rules, is_dry=False) == shown
        [left] = await served.gateway.runtime.log.sessions("wilhelmina")
        assert left.session_id == busy.session_id
        with pytest.raises(NotFound):
            await served.gateway.sessions.get("wilhelmina", old)
        assert words_in(tmp_path / "data" / "files", WORD) == []


def test_the_command_erases_a_user_while_no_server_runs(dragoman: Run, tmp_path: Path, address: str) -> None:
    async def make() -> None:
        async with serving(tmp_path, log=address) as served:
            await fill(served.gateway, "wilhelmina", f"{WORD}wilhelmina")

    simulated(make())
    config = ("--config", str(tmp_path / "config.yaml"))
    shown = dragoman("purge", "--user", "wilhelmina", *config)
    assert (shown.exit_code, "--yes deletes it" in shown.stderr) == (0, True), shown.output
    done = dragoman("purge", "--user", "wilhelmina", "--yes", *config)
    assert (done.exit_code, "Deleted: everything of 'wilhelmina'." in done.stderr) == (0, True), done.output
    assert names_in(address, "wilhelmina") == []
    again = dragoman("purge", "--user", "wilhelmina", *config)
    assert again.exit_code == 0
    assert again.stderr.splitlines() == ["There is nothing of a user 'wilhelmina'.", "Nothing was deleted."]


@pytest.mark.parametrize(("settings", "told"), [
    ({}, "has no data of Dragoman under the prefix"),
    ({"data": "elsewhere"}, "elsewhere; name the data folder of the servers with --data"),
])
def test_a_wrong_place_is_told_and_nothing_is_written_there(
    dragoman: Run, tmp_path: Path, address: str, settings: dict[str, str], told: str,
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "config.yaml").write_text(
        "".join(f"{name}: {value}\n" for name, value in {
            "data": "data", "log": address, "dialects": "{aap: {}}", "agents": "{demo: {backend: demo}}", **settings,
        }.items()))
    done = dragoman("purge", "--user", "wilhelmina", "--config", str(tmp_path / "config.yaml"))
    assert (done.exit_code, told in " ".join(done.stderr.split())) == (2, True), done.output
    assert names_in(address, "") == []
    assert not (tmp_path / "elsewhere").exists()


async def test_files_that_are_not_in_this_folder_are_told(tmp_path: Path, address: str) -> None:
    async with serving(tmp_path, log=address) as served:
        await fill(served.gateway, "wilhelmina", f"{WORD}wilhelmina")
        other = load_config(tmp_path / "config.yaml", {"data": tmp_path})
        with pytest.raises(Conflict, match=r"has 1 files, and .* has none of them"):
            await UserPurge(other, "wilhelmina").counts()
