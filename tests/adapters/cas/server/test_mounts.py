"""What is mounted: paths that stay under /data/, aliases that agree, files that are ready, tokens that are not told."""

import asyncio
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cas.server import mounts
from adapters.cas.server.mounts import SessionMounts, checked_mount, mount_body, normalized_path
from gateway.client import AddressPolicy
from gateway.errors import Invalid, NotFound
from gateway.storage.resources.memory import MemoryResources
from tests.support.dialect_tables import table
from tests.support.dialects.cas.client import Client


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def check(context: Any, owner: str, file_id: str) -> None:
        if file_id == "file_none":
            raise Invalid("File 'file_none' was not found.")

    async def check_store(context: Any, owner: str, store_id: str) -> None:
        if store_id == "memstore_none":
            raise Invalid("Memory store 'memstore_none' was not found.")

    monkeypatch.setattr(mounts, "check_file", check)
    monkeypatch.setattr(mounts, "check_memory_store", check_store)
    return SimpleNamespace(resources=MemoryResources(lambda: 1.0), table=table("cas"), addresses=AddressPolicy())


@pytest.mark.parametrize(("given", "path"), [
    ("a.txt", "/data/a.txt"), ("/data/a.txt", "/data/a.txt"), ("a/../b", "/data/b"), ("./a//b/", "/data/a/b"),
    ("/data/x/../y", "/data/y"), ("//data//z", "/data/z"), ("data/x", "/data/data/x"), ("...", "/data/..."),
    ("x" * 506, "/data/" + "x" * 506),
    ("/data/" + "./" * 300 + "a", "/data/a"),
])
def test_a_path_is_put_under_data(given: str, path: str) -> None:
    assert normalized_path(given) == path


@pytest.mark.parametrize("given", [
    "", "..", ".", "/", "/data", "/data/", "/data/..", "/etc/passwd", "../etc", "a/../../b", "/data/../etc",
    "/database/x", "a\0b", "x" * 507, "a/../" + "x" * 508, "/data/../data/../x",
])
def test_a_path_that_escapes_is_refused(given: str) -> None:
    with pytest.raises(Invalid) as refused:
        normalized_path(given, "resources.0")
    assert refused.value.param == "resources.0.path"


@given(st.lists(st.sampled_from(["..", ".", "", "a", "data", "/", "~"])).map("/".join))
def test_no_path_ever_leaves(path: str) -> None:
    try:
        found = normalized_path(path)
    except Invalid:
        return
    assert found.startswith("/data/")
    assert ".." not in found.split("/")


async def test_a_file_has_its_default_place_and_its_alias(house: Any) -> None:
    assert (await checked_mount(house, "", {"file_id": "file_1"})).body["path"] == "/data/file_1"
    for said in ({"path": "x"}, {"mount_path": "x"}, {"path": "x", "mount_path": "x"},
                 {"path": "/data/x", "mount_path": "x"}, {"path": "x", "mount_path": "/data/y/../x"}):
        assert (await checked_mount(house, "", {"type": "file", "file_id": "file_1", **said})).body["path"] == "/data/x"


@pytest.mark.parametrize(("given", "param"), [
    ({"file_id": "file_1", "path": "x", "mount_path": "/data/y"}, "mount_path"),
    ({"file_id": "file_1", "path": "a\nb"}, "path"),
    ({"file_id": "file_1", "path": "a\x7f"}, "path"),
    ({"file_id": "file_1", "mount_path": "../x"}, "mount_path"),
    ({"file_id": "file_none"}, "file_id"),
    ({"file_id": 1}, "file_id"),
    ({}, "file_id"),
    ({"type": "github_repository"}, "url"),
    ({"type": "github_repository", "url": ""}, "url"),
    ({"type": "github_repository", "url": "not a url"}, "url"),
    ({"type": "github_repository", "url": "https://"}, "url"),
    ({"type": "github_repository", "url": "https://[x"}, "url"),
    ({"type": "github_repository", "url": "https://x/ y"}, "url"),
    ({"type": "github_repository", "url": "ftp://x/y"}, "url"),
    ({"type": "github_repository", "url": "ssh://git@host.test/a.git"}, "url"),
    ({"type": "github_repository", "url": "http://192.168.0.1/a.git"}, "url"),
    ({"type": "github_repository", "url": "https://x", "authorization_token": 5}, "authorization_token"),
    ({"type": None}, "type"),
    ({"type": "memory_store", "memory_store_id": "memstore_none"}, "memory_store_id"),
    ({"type": "memory_store", "memory_store_id": "memstore_1", "access": "all"}, "access"),
])
async def test_what_makes_no_sense_is_refused_with_its_field(house: Any, given: Any, param: str) -> None:
    with pytest.raises(Invalid) as refused:
        await checked_mount(house, "", given)
    assert refused.value.param == param


async def test_a_memory_store_is_mounted(house: Any) -> None:
    mount = await checked_mount(house, "", {"type": "memory_store", "memory_store_id": "memstore_1"})
    shown = mount_body(table("cas"), await SessionMounts(house, "", "sess_1").add(mount))
    assert (shown["type"], shown["memory_store_id"], shown["access"]) == ("memory_store", "memstore_1", "read_write")


async def test_mounts_come_and_go_with_their_session(house: Any) -> None:
    of_session = SessionMounts(house, "ann", "sess_1")
    assert await of_session.all() == []
    token = {"type": "github_repository", "url": "https://x.test", "authorization_token": "hush"}
    mount = await checked_mount(house, "ann", token)
    assert "hush" not in repr(mount)
    first = await of_session.add(mount)
    second = await of_session.add(await checked_mount(house, "ann", {"file_id": "file_1"}))
    assert first.secrets == {"authorization_token": "hush"}
    shown = mount_body(table("cas"), first)
    assert "hush" not in str(shown)
    assert (shown["id"], shown["url"]) == (first.resource_id, "https://x.test")
    assert [one.resource_id for one in await of_session.all()] == [first.resource_id, second.resource_id]
    with pytest.raises(NotFound):
        await SessionMounts(house, "ann", "sess_2").get(first.resource_id)
    await of_session.remove(first.resource_id)
    assert [one.resource_id for one in await of_session.all()] == [second.resource_id]
    await of_session.clear()
    assert await of_session.all() == []
    with pytest.raises(NotFound):
        await house.resources.get("session_resource", "ann", second.resource_id)


@pytest.mark.parametrize(("given", "token"), [
    ({"url": "https://ann:hush@host.test:8443/a.git"}, "hush"), ({"url": "https://hush@host.test:8443/a.git"}, "hush"),
    ({"url": "https://ann:other@host.test:8443/a.git", "authorization_token": "hush"}, "hush"),
])
async def test_the_credentials_of_an_address_are_kept_and_not_told(house: Any, given: Any, token: str) -> None:
    mount = await checked_mount(house, "", {"type": "github_repository", **given})
    assert (mount.body["url"], mount.secrets) == ("https://host.test:8443/a.git", {"authorization_token": token})


async def test_two_files_cannot_be_at_one_path(cas: Client) -> None:
    form = aiohttp.FormData()
    form.add_field("file", b"hello", filename="a.txt")
    async with cas.served.http.post(cas.served.url(f"{cas.at}/files"), data=form) as response:
        file = (await response.json())["id"]
    two = [{"file_id": file, "path": "m"}, {"file_id": file, "path": "/data/n/../m"}]
    body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}, "resources": two}
    status, refused = await cas.call("POST", "/sessions", body)
    assert (status, refused["error"]["param"]) == (400, "resources.1.path")
    session = await cas.session(resources=two[:1])
    status, refused = await cas.call("POST", f"/sessions/{session}/resources", two[1])
    assert (status, refused["error"]["param"]) == (409, "path")


async def test_what_is_mounted_at_once_is_all_there(cas: Client) -> None:
    session = await cas.session()
    at = f"/sessions/{session}/resources"
    answers = await asyncio.gather(*(
        cas.call("POST", at, {"type": "github_repository", "url": f"https://example.test/{n}"}) for n in range(6)
    ))
    assert [status for status, _ in answers] == [201] * 6
    _, listed = await cas.call("GET", at)
    assert sorted(one["url"] for one in listed["data"]) == [f"https://example.test/{n}" for n in range(6)]
