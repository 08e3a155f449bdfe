"""`dragoman purge` shows what would go, deletes it with --yes, and erases a user everywhere."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from typer.testing import Result

import gateway.model as m
from gateway.app import Gateway
from gateway.ports import SessionFilter, StoredResponse
from gateway.resources import Memories, Memory, Shares, create_file_resource
from tests.simulation import simulated
from tests.support.gateway_server import serving, until
from tests.support.s3.server import s3_server

Run = Callable[..., Result]
DAY = 86_400.0
FIRST = 1_700_000_000.0
WORD = "xylophonequartz"
"""A word of every user that nothing else has."""


def words_in(folder: Path, word: str) -> list[str]:
    """The files that have the word, in their names or in their bytes."""
    return sorted(path.name for path in folder.rglob("*")
                  if path.is_file() and (word.encode() in path.read_bytes() or word in path.name))


async def fill(gateway: Gateway, user: str, word: str) -> str:
    """Let the user have something of many kinds, each with the word; return the id of the session."""
    session = await gateway.sessions.create(user, "demo", title=f"{word} title")
    await gateway.sessions.submit(user, session.session_id, [m.SendMessage(content=f"say {word}")])
    await until(lambda: not gateway.table.turn_count)
    await gateway.sessions.find(user, SessionFilter(text=word))
    workspace = gateway.components.config.data / "workspaces" / session.session_id
    workspace.mkdir(parents=True)
    (workspace / "notes.txt").write_text(word)
    await Shares(gateway.resources, gateway.clock).share(user, session.session_id)
    await Memories(gateway.resources, gateway.clock).add(user, Memory(content=f"likes {word}"))
    made = await gateway.resources.create("agent", user, {"name": f"{word} one"}, secrets={"token": "hush"})
    await gateway.resources.update("agent", user, made.resource_id, {"name": f"{word} two"})
    await gateway.resources.archive("agent", user, made.resource_id)

    async def chunks() -> AsyncIterator[bytes]:
        yield word.encode()

    stored = await gateway.files.store(chunks())
    await create_file_resource(gateway.files, gateway.resources, user, stored, {"name": f"{word}.txt"})
    await gateway.answers.store(
        (user, "POST", f"/{word}", word),
        StoredResponse(digest="d", status=200, content_type="text/plain", body=word.encode()))
    await gateway.keys.add(f"{word}-laptop", user)
    return session.session_id


@pytest.fixture
def sessions(tmp_path: Path) -> dict[str, str]:
    """Two users who have the same things, in a data folder that no server uses now."""
    async def make() -> dict[str, str]:
        async with serving(tmp_path, lambda: FIRST, log="sqlite") as served:
            return {user: await fill(served.gateway, user, f"{WORD}{user}") for user in ("ada", "bob")}

    return simulated(make())


def test_a_dry_run_shows_what_a_user_has_and_deletes_nothing(
    dragoman: Run, tmp_path: Path, sessions: dict[str, str],
) -> None:
    before = words_in(tmp_path / "data", f"{WORD}ada")
    shown = dragoman("purge", "--user", "ada", "--config", str(tmp_path / "config.yaml"))
    assert (shown.exit_code, "Nothing was deleted" in shown.stderr) == (0, True), shown.output
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["1", "session"], ["1", "agent"], ["1", "file"], ["1", "note"], ["1", "key"],
        ["1", "stored", "response"]]
    assert words_in(tmp_path / "data", f"{WORD}ada") == before


def test_a_user_is_exported_and_then_erased_everywhere(
    dragoman: Run, tmp_path: Path, sessions: dict[str, str],
) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    assert "dragoman.db" in words_in(data, f"{WORD}ada")
    done = dragoman("purge", "--user", "ada", "--export", str(out), "--yes", "--config", str(tmp_path / "config.yaml"))
    assert done.exit_code == 0, done.output
    assert words_in(data, f"{WORD}ada") == ["audit.jsonl"], "the audit log names the key"
    assert words_in(data, sessions["ada"]) == []
    assert "dragoman.db" in words_in(data, f"{WORD}bob")
    assert (data / "workspaces" / sessions["bob"] / "notes.txt").exists()
    kinds = [json.loads(line)["kind"] for line in (out / "resources.jsonl").read_text().splitlines()]
    assert sorted(kinds) == ["agent", "agent", "file", "note"]
    assert "hush" not in (out / "resources.jsonl").read_text()
    assert f"say {WORD}ada" in (out / "sessions.jsonl").read_text()
    assert (out / "workspaces" / sessions["ada"] / "notes.txt").read_text() == f"{WORD}ada"
    assert len([*(out / "files").iterdir()]) == 1
    assert f"{WORD}bob" not in "".join(path.read_text() for path in out.rglob("*") if path.is_file())
    verdict = dragoman("log", "verify", "--config", str(tmp_path / "config.yaml"))
    assert verdict.exit_code == 0, verdict.output


def test_the_files_of_a_user_are_exported_from_a_bucket_and_erased_there(
    dragoman: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fill_bucket() -> dict[str, str]:
        made = {}
        async with serving(tmp_path, log="sqlite", files="s3://agents/site", secrets_key="k" * 32) as served:
            gateway = served.gateway
            for user in ("ada", "bob"):
                async def chunks(word: bytes = user.encode()) -> AsyncIterator[bytes]:
                    yield word

                stored = await gateway.files.store(chunks())
                await create_file_resource(gateway.files, gateway.resources, user, stored, {"name": "one.txt"})
                made[user] = f"site/files/{stored.file_id}"
        return made

    with s3_server() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        names, out = simulated(fill_bucket()), tmp_path / "out"
        assert server.objects() == {names["ada"]: b"ada", names["bob"]: b"bob"}
        done = dragoman(
            "purge", "--user", "ada", "--export", str(out), "--yes", "--config", str(tmp_path / "config.yaml"))
        assert done.exit_code == 0, done.output
        assert server.objects() == {names["bob"]: b"bob"}
        assert [one.read_bytes() for one in (out / "files").iterdir()] == [b"ada"]


def test_what_is_old_is_shown_and_with_yes_deleted(dragoman: Run, tmp_path: Path, sessions: dict[str, str]) -> None:
    def purge(*words: str) -> list[str]:
        done = dragoman("purge", *words, "--config", str(tmp_path / "config.yaml"))
        assert done.exit_code == 0, done.output
        return [" ".join(line.split()[:3:2]) for line in done.stdout.splitlines()]

    assert purge() == [], "the settings keep everything"
    assert purge("--older-than", "100000d") == []
    assert sorted(purge("--older-than", "30d", "--user", "ada")) == ["file ada", "session ada"]
    assert len(purge("--older-than", "30d")) == 4
    assert len(purge("--older-than", "30d", "--user", "ada", "--yes")) == 2
    assert sorted(purge("--older-than", "30d", "--yes")) == ["file bob", "session bob"]
    assert purge("--older-than", "30d") == []


@pytest.mark.parametrize(("words", "told"), [
    (["--older-than", "soon"], "a number of days such as 90d, not 'soon'"),
    (["--export", "out"], "give it with --user"),
])
def test_wrong_words_are_explained(dragoman: Run, tmp_path: Path, words: list[str], told: str) -> None:
    done = dragoman("purge", *words, "--data", str(tmp_path))
    assert (done.exit_code, told in " ".join(done.stderr.split())) == (2, True), done.output
