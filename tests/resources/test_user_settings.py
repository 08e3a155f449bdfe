"""What a user has chosen fills in what a new session leaves open; secrets are sealed and apart."""

import pytest

import gateway.model as m
from gateway.errors import Invalid
from gateway.resources.user_settings import UserChoices, UserSettings
from gateway.storage.resources.memory import MemoryResources

CARDS = {
    "demo": m.AgentCard(name="demo", model="demo-1", options=(
        m.AgentOption(name="tone", kind=m.OptionKind.SELECT, choices=("plain", "formal"), default="plain"),
        m.AgentOption(name="place"), m.AgentOption(name="token", kind=m.OptionKind.SECRET),
    )),
    "other": m.AgentCard(name="other", model="other-1"),
}


@pytest.fixture
def settings() -> UserSettings:
    return UserSettings(MemoryResources(clock=lambda: 1.0), lambda: CARDS)


async def test_choices_fill_in_what_is_open(settings: UserSettings) -> None:
    assert await settings.filled("ann", "demo", m.Settings()) == m.Settings()
    await settings.change("ann", options={
        "demo": {"tone": "formal", "place": "Rome", "token": "t0p", "rocket": "x"}})
    assert await settings.filled("ann", "demo", m.Settings(options={"place": "Oslo"})) == m.Settings(
        options={"tone": "formal", "place": "Oslo"}, secrets={"token": "t0p"})
    assert await settings.filled("bob", "demo", m.Settings()) == m.Settings()
    assert await settings.filled("ann", "other", m.Settings()) == m.Settings()


async def test_secrets_are_kept_apart() -> None:
    store = MemoryResources(clock=lambda: 1.0)
    settings = UserSettings(store, lambda: CARDS)
    await settings.change("ann", options={"demo": {"token": "t0p", "place": "Rome"}})
    [kept] = await store.list("setting", "ann")
    assert "t0p" not in repr(kept.body)
    assert await settings.get("ann") == UserChoices(
        options={"demo": {"place": "Rome"}}, secrets={"demo": {"token": "t0p"}})


async def test_an_empty_value_removes(settings: UserSettings) -> None:
    await settings.change("ann", options={"demo": {"place": "Rome", "token": "t0p"}})
    await settings.change("ann", options={"demo": {"place": "", "token": ""}})
    assert await settings.get("ann") == UserChoices()


async def test_a_model_chooses_the_agent(settings: UserSettings) -> None:
    assert await settings.default_agent("ann") is None
    await settings.change("ann", model="other-1")
    assert await settings.default_agent("ann") == "other"
    await settings.change("ann", model="")
    assert await settings.default_agent("ann") is None


async def test_what_is_refused_changes_nothing(settings: UserSettings) -> None:
    with pytest.raises(Invalid, match="there is no model 'x'"):
        await settings.change("ann", model="x", options={"demo": {"tone": "formal"}})
    for values in ({"tone": "loud"}, {"place": "x" * 8193}):
        with pytest.raises(Invalid):
            await settings.change("ann", options={"demo": {"token": "t", **values}})
    await settings.change("ann", options={"nobody": {"a": "b"}})
    assert await settings.get("ann") == UserChoices()
