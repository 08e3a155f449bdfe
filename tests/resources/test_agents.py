"""Made agents stand on configured ones, keep their versions, and are nobody else's."""

import itertools

import msgspec
import pytest

import gateway.model as m
from gateway.errors import Conflict, Forbidden, Invalid, NotFound
from gateway.ports import AgentDefinition
from gateway.resources.agents import MAX_AGENTS, MAX_SYSTEM_LENGTH, AgentService, UnknownModel, models_of
from gateway.resources.named_resources import AlreadyExists
from gateway.storage.resources.memory import MemoryResources

CLOCK = m.AgentTool(spec=m.ToolSpec(name="clock"))
SEARCH = m.AgentTool(spec=m.ToolSpec(name="search"), permission=m.Permission.ASK)
CARDS = {
    "demo": m.AgentCard(name="demo", title="Demo agent", model="demo-1", tools=(CLOCK, SEARCH)),
    "other": m.AgentCard(name="other"),
}
TUTOR = AgentDefinition(name="Tutor", system="You teach.", model="demo-1")


@pytest.fixture
def store() -> MemoryResources:
    return MemoryResources(clock=itertools.count(1.0).__next__)


@pytest.fixture
def agents(store: MemoryResources) -> AgentService:
    return AgentService(store, lambda: CARDS, started_at=0.5)


async def test_configured_agents_are_there_and_fixed(agents: AgentService) -> None:
    found = await agents.get("ann", "demo")
    assert (found.agent_id, found.version, found.definition.name, found.definition.model, found.created_at) == (
        "demo", 1, "Demo agent", "demo-1", 0.5)
    with pytest.raises(NotFound):
        await agents.get("ann", "demo", 2)
    for call in (agents.change("ann", "demo", TUTOR), agents.delete("ann", "demo"), agents.archive("ann", "demo")):
        with pytest.raises(Forbidden, match=r"config\.yaml"):
            await call
    assert agents.settings_of(found) == m.Settings()


async def test_a_made_agent_is_its_owners(agents: AgentService) -> None:
    made = await agents.create("ann", TUTOR, "tutor")
    assert (made.agent_id, made.version, made.definition) == ("tutor", 1, TUTOR)
    assert (await agents.get("ann", "tutor")) == made
    for call in (agents.get("bob", "tutor"), agents.delete("bob", "tutor"), agents.change("bob", "tutor", TUTOR)):
        with pytest.raises(NotFound):
            await call
    await agents.create("bob", TUTOR, "tutor")
    assert [one.agent_id for one in await agents.page("ann")] == ["demo", "other", "tutor"]


async def test_an_id_is_minted_where_none_is_chosen(agents: AgentService) -> None:
    made = await agents.create("ann", TUTOR)
    assert made.agent_id.startswith("agent_")
    assert await agents.get("ann", made.agent_id) == made


@pytest.mark.parametrize("taken", ["demo", "tutor"])
async def test_an_id_is_taken_once(agents: AgentService, taken: str) -> None:
    await agents.create("ann", TUTOR, "tutor")
    with pytest.raises(AlreadyExists):
        await agents.create("ann", TUTOR, taken)


@pytest.mark.parametrize("agent_id", ["", "../x", "a b", "-a", "a" * 65])
async def test_an_id_is_a_name(agents: AgentService, agent_id: str) -> None:
    with pytest.raises(Invalid):
        await agents.create("ann", TUTOR, agent_id)


@pytest.mark.parametrize("agent_id", ["tutor", None])
async def test_a_change_is_a_new_version(agents: AgentService, agent_id: str | None) -> None:
    made = await agents.create("ann", TUTOR, agent_id)
    changed = await agents.change("ann", made.agent_id, TUTOR.changed("x", system="You ask."), expected=1)
    assert (changed.version, changed.definition.system, changed.agent_id) == (2, "You ask.", made.agent_id)
    assert (await agents.get("ann", made.agent_id, 1)).definition == TUTOR
    assert [one.version for one in await agents.versions("ann", made.agent_id)] == [1, 2]
    assert (await agents.change("ann", made.agent_id, changed.definition)).version == 2
    with pytest.raises(Conflict, match="it is 2"):
        await agents.change("ann", made.agent_id, TUTOR, expected=1)


async def test_an_archived_agent_is_not_changed_and_not_chosen(agents: AgentService) -> None:
    await agents.create("ann", TUTOR, "tutor")
    assert (await agents.archive("ann", "tutor")).archived_at is not None
    for call in (agents.change("ann", "tutor", TUTOR), agents.choose("ann", "tutor")):
        with pytest.raises(Conflict, match="archived"):
            await call


async def test_an_inactive_agent_is_not_chosen(agents: AgentService) -> None:
    await agents.create("ann", TUTOR.changed("x", is_active=False), "tutor")
    with pytest.raises(Conflict, match="not active"):
        await agents.choose("ann", "tutor")


async def test_a_deleted_agent_is_gone(agents: AgentService) -> None:
    made = await agents.create("ann", TUTOR, "tutor")
    await agents.delete("ann", "tutor")
    with pytest.raises(NotFound):
        await agents.get("ann", made.agent_id)
    assert (await agents.create("ann", TUTOR, "tutor")).version == 1


async def test_a_session_gets_what_the_agent_has(agents: AgentService) -> None:
    definition = TUTOR.changed("x", tools={"clock": m.Permission.ASK}, options={"tone": "plain"})
    await agents.create("ann", definition, "tutor")
    chosen = await agents.choose("ann", "tutor")
    assert chosen.card is CARDS["demo"]
    assert chosen.settings == m.Settings(
        agent_id="tutor", agent_version=1, tools={"clock": m.Permission.ASK}, options={"tone": "plain"},
        system="You teach.", model="demo-1",
    )


async def test_a_card_has_the_enabled_tools_only(agents: AgentService) -> None:
    made = await agents.create("ann", TUTOR.changed("x", tools={"clock": m.Permission.ASK}), "tutor")
    card = agents.shown_card(made)
    assert (card.name, card.title, card.version) == ("tutor", "Tutor", "1.0.0")
    assert [(tool.spec.name, tool.permission) for tool in card.tools] == [("clock", m.Permission.ASK)]
    everything = agents.shown_card(await agents.create("ann", TUTOR, "all"))
    assert [tool.spec.name for tool in everything.tools] == ["clock", "search"]


async def test_what_cannot_work_is_refused(agents: AgentService) -> None:
    for wrong, error in (
        (TUTOR.changed("x", model="gpt"), UnknownModel),
        (TUTOR.changed("x", tools={"rocket": m.Permission.ALLOW}), Invalid),
        (TUTOR.changed("x", system="x" * (MAX_SYSTEM_LENGTH + 1)), Invalid),
    ):
        with pytest.raises(error):
            await agents.create("ann", wrong, "tutor")
        with pytest.raises(NotFound):
            await agents.get("ann", "tutor")


async def test_there_is_a_most(agents: AgentService) -> None:
    for number in range(MAX_AGENTS):
        await agents.create("ann", TUTOR, None if number % 2 else f"a{number}")
    for agent_id in ("tutor", None):
        with pytest.raises(Conflict, match=f"you have {MAX_AGENTS}"):
            await agents.create("ann", TUTOR, agent_id)


def test_a_change_drops_what_others_keep_of_the_field() -> None:
    made = TUTOR.changed("one", {"tools": ["spelled"], "mood": "good"}, tools={"clock": m.Permission.ALLOW})
    assert made.extra == {"one": {"tools": ["spelled"], "mood": "good"}}
    assert made.changed("one", system="x").extra == made.extra
    assert made.changed("two", tools=None).extra == {"one": {"mood": "good"}}
    assert made.changed("two", {"a": 1}, tools=None).extra == {"one": {"mood": "good"}, "two": {"a": 1}}


def test_models_have_the_names_of_their_agents_where_two_share_one() -> None:
    cards = [m.AgentCard(name="a", model="x"), m.AgentCard(name="b", model="x"), m.AgentCard(name="c")]
    assert {name: card.name for name, card in models_of(cards).items()} == {"x": "a", "b": "b", "c": "c"}


async def test_an_older_body_enables_no_tools_for_others(store: MemoryResources, agents: AgentService) -> None:
    older = {"name": "Old", "description": None, "system": None, "metadata": {"a": "b"}, "model": "demo-1",
             "nova": {"tools": [{"type": "custom"}]}}
    found = await store.create("agent", "ann", older)
    kept = (await agents.get("ann", found.resource_id)).definition
    assert kept == AgentDefinition(
        name="Old", model="demo-1", metadata={"a": "b"}, tools={}, extra={"nova": {"tools": [{"type": "custom"}]}})


async def test_an_agent_is_stored_as_plain_json(store: MemoryResources, agents: AgentService) -> None:
    await agents.create("ann", TUTOR.changed("x", tools={"clock": m.Permission.ASK}), "tutor")
    [kept] = await store.list("agent", "ann")
    assert msgspec.json.decode(msgspec.json.encode(kept.body)) == {
        "name": "tutor", "definition": {"name": "Tutor", "system": "You teach.", "model": "demo-1",
                                        "tools": {"clock": "ask"}}}
