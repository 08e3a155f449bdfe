"""A name belongs to its owner: another user may have the same one, and learns nothing."""

import re

import pytest

from gateway.errors import Conflict, Invalid, NotFound
from gateway.resources.named_resources import AlreadyExists, NamedResources
from gateway.storage.resources.memory import MemoryResources


@pytest.fixture
def servers() -> NamedResources:
    return NamedResources(
        MemoryResources(clock=lambda: 1.0), "server", "MCP server", re.compile(r"[a-z]{1,8}"), most=3)


async def test_two_owners_have_the_same_name(servers: NamedResources) -> None:
    await servers.create("ann", "notion", {"url": "a"})
    await servers.create("bob", "notion", {"url": "b"})
    assert (await servers.get("ann", "notion")).body == {"url": "a", "name": "notion"}
    assert (await servers.get("bob", "notion")).body == {"url": "b", "name": "notion"}
    await servers.delete("ann", "notion")
    assert await servers.find("ann", "notion") is None
    assert (await servers.get("bob", "notion")).body["url"] == "b"


async def test_a_name_is_taken_once(servers: NamedResources) -> None:
    await servers.create("ann", "notion", {})
    with pytest.raises(AlreadyExists, match="MCP server 'notion' exists already"):
        await servers.create("ann", "notion", {})


async def test_below_different_parents_a_name_is_free(servers: NamedResources) -> None:
    await servers.create("ann", "notion", {"of": "one"}, parent="one")
    await servers.create("ann", "notion", {"of": "two"}, parent="two")
    assert (await servers.get("ann", "notion", "two")).body["of"] == "two"
    assert [one.body["of"] for one in await servers.all("ann", "one")] == ["one"]
    assert [one.body["of"] for one in await servers.all("ann")] == ["one", "two"]


async def test_there_is_a_most(servers: NamedResources) -> None:
    for name in ("one", "two", "three"):
        await servers.create("ann", name, {})
    with pytest.raises(Conflict, match="you have 3 of the kind 'MCP server'") as refused:
        await servers.create("ann", "four", {})
    assert not isinstance(refused.value, AlreadyExists)


@pytest.mark.parametrize("name", ["", "..", "a/b", "UPPER", "waytoolong", "a\n"])
async def test_a_name_that_is_none_is_refused_and_never_found(servers: NamedResources, name: str) -> None:
    with pytest.raises(Invalid, match="name: "):
        await servers.create("ann", name, {})
    with pytest.raises(NotFound):
        await servers.get("ann", name)


async def test_a_change_is_of_the_version_that_was_read(servers: NamedResources) -> None:
    first = await servers.create("ann", "notion", {"url": "a"}, secrets={"token": "t"})
    second = await servers.update(first, {"url": "b"})
    assert (second.body, second.secrets, second.version) == ({"url": "b", "name": "notion"}, {"token": "t"}, 2)
    with pytest.raises(Conflict):
        await servers.update(first, {"url": "c"})
