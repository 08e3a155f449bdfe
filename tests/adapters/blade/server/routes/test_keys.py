"""API keys over HTTP: shown once, the user's own, and good for every dialect."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.dialects.blade.rest_server import Client, blade
from tests.support.key_stores import key_store

KEYS = "/user/api-keys"


@pytest.fixture
async def ada(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path, auth="keys") as client:
        yield client.known_as(key_store(tmp_path / "data").add("ada"))


@pytest.mark.parametrize("path", [KEYS, f"{KEYS}/"])
async def test_a_key_is_shown_once(ada: Client, path: str) -> None:
    answer = await ada.post(path, {"name": "My Key"})
    assert answer.status == 201
    plaintext = answer.body["plaintext"]
    assert plaintext.startswith("sk-blade-v2-")
    key = answer.body["key"]
    assert key == {**{name: answer.body[name] for name in key}, "plaintext": None}
    assert (key["name"], key["masked"]) == ("My Key", f"sk-blade-v2-...{plaintext[-4:]}")
    assert key["id"].startswith("key_")
    assert (await ada.get(f"{KEYS}/{key['id']}")).body == key
    assert key in (await ada.get(path)).body


async def test_it_opens_for_its_user_here_and_elsewhere(ada: Client, tmp_path: Path) -> None:
    made = (await ada.post(KEYS, {"name": "one"})).body
    mine = ada.known_as(made["plaintext"])
    listed = (await mine.get(KEYS)).body
    assert [key["name"] for key in listed] == ["ada", "one"]
    assert listed[1]["last_used_at"] is not None
    assert listed[1]["last_used_from"] == "127.0.0.1"
    assert key_store(tmp_path / "data").verify(made["plaintext"]) == "ada"


async def test_it_is_renamed(ada: Client) -> None:
    key = (await ada.post(KEYS, {"name": "one"})).body["key"]
    renamed = await ada.patch(f"{KEYS}/{key['id']}", {"name": "two"})
    assert renamed.body == {**key, "name": "two"}


async def test_it_is_deleted_and_opens_no_more(ada: Client) -> None:
    made = (await ada.post(KEYS, {"name": "one"})).body
    answer = await ada.delete(f"{KEYS}/{made['id']}")
    assert (answer.status, answer.body) == (204, b"")
    assert (await ada.known_as(made["plaintext"]).get(KEYS)).status == 401
    assert (await ada.get(f"{KEYS}/{made['id']}")).status == 404


@pytest.mark.parametrize("name", ["", "x" * 51, 5])
async def test_odd_names_are_refused(ada: Client, name: object) -> None:
    assert (await ada.post(KEYS, {"name": name})).status == 400


async def test_other_peoples_keys_are_not_found(ada: Client, tmp_path: Path) -> None:
    bob = ada.known_as(key_store(tmp_path / "data").add("bob"))
    key = (await ada.post(KEYS, {"name": "one"})).body["key"]
    for answer in (
        await bob.get(f"{KEYS}/{key['id']}"), await bob.delete(f"{KEYS}/{key['id']}"),
        await bob.patch(f"{KEYS}/{key['id']}", {"name": "x"}),
    ):
        assert answer.status == 404
    assert [found["name"] for found in (await bob.get(KEYS)).body] == ["bob"]


async def test_memories_are_ones_own_too(ada: Client, tmp_path: Path) -> None:
    bob = ada.known_as(key_store(tmp_path / "data").add("bob"))
    memory = (await ada.post("/memories", {"content": "x"})).body
    assert (await bob.get(f"/memories/{memory['id']}")).status == 404
    assert (await bob.get("/memories")).body == {"items": [], "total": 0}
    assert (await bob.known_as("sk-none").get("/memories")).status == 401


async def test_a_key_made_here_opens_another_dialect(tmp_path: Path) -> None:
    async with blade(tmp_path, auth="keys", dialects={"blade": {}, "aap": {}}) as nobody:
        ada = nobody.known_as(key_store(tmp_path / "data").add("ada"))
        made = (await ada.post(KEYS, {"name": "one"})).body["plaintext"]
        for key, status in ((made, 200), ("sk-blade-v2-other", 401)):
            async with ada.served.http.get(
                ada.served.url("/aap/sessions"), headers={"Authorization": f"Bearer {key}"},
            ) as answer:
                assert answer.status == status
