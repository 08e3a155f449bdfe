"""The rule of the settings decides who may change managed resources; reading stays free."""

import pytest

from gateway.errors import Forbidden, NotFound
from gateway.ports import Caller
from gateway.resources.change_rules import Changes, RuledResources
from gateway.storage.resources.memory import MemoryResources

USER, ADMIN = Caller(user="ann"), Caller(user="ann", role="admin")


def ruled(rule: Changes, caller: Caller | None) -> RuledResources:
    return RuledResources(MemoryResources(clock=lambda: 1.0), lambda: rule, lambda: caller)


@pytest.mark.parametrize(("rule", "caller"), [("own", USER), ("read", ADMIN), ("read", None), ("off", None)])
async def test_who_may_change(rule: Changes, caller: Caller | None) -> None:
    store = ruled(rule, caller)
    made = await store.create("agent", "ann", {"a": 1}, secrets={"s": "t"}, parent="p", resource_id="x")
    assert (made.resource_id, made.secrets, made.parent) == ("x", {"s": "t"}, "p")
    changed = await store.update("agent", "ann", "x", {"a": 2}, expected=1)
    assert changed.body == {"a": 2}
    assert (await store.archive("agent", "ann", "x")).archived_at is not None
    await store.delete("agent", "ann", "x")
    with pytest.raises(NotFound):
        await store.get("agent", "ann", "x")


@pytest.mark.parametrize(("rule", "caller", "word"), [
    ("read", USER, "only admins"), ("off", USER, "off"), ("off", ADMIN, "off"),
])
async def test_who_may_not(rule: Changes, caller: Caller, word: str) -> None:
    store = ruled(rule, caller)
    for call in (
        store.create("agent", "ann", {}), store.update("skill", "ann", "x", {}), store.archive("tool", "ann", "x"),
        store.delete("mcp_server", "ann", "x"),
    ):
        with pytest.raises(Forbidden, match=word):
            await call
    assert await store.list("agent", "ann") == []


async def test_what_belongs_to_conversations_is_not_ruled() -> None:
    assert (await ruled("off", USER).create("note", "ann", {"a": 1})).body == {"a": 1}
