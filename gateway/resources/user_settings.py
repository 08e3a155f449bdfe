"""Standing choices of users: the default model, and options of agents that fill in where a new session says nothing."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Invalid
from gateway.ports import Resource, Resources

from .agents import models_of
from .named_resources import NamedResources

KIND = "setting"
NAME = "choices"
MAX_VALUE_BYTES = 8 * 1024


class UserChoices(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one user has chosen: a model, and values of options by agent; secrets stand apart."""

    model: str | None = None
    options: dict[str, dict[str, str]] = {}
    secrets: dict[str, dict[str, str]] = {}


class UserSettings:
    """The choices of all users; secrets are sealed in the store and never shown."""

    kinds: tuple[str, ...] = (KIND,)

    def __init__(self, resources: Resources, cards: Callable[[], Mapping[str, m.AgentCard]]) -> None:
        self._stored = NamedResources(resources, KIND, "setting", re.compile(NAME), 1)
        self._cards = cards

    async def get(self, owner: str) -> UserChoices:
        return _choices(await self._stored.find(owner, NAME))

    async def change(
        self, owner: str, *, model: str | None = None, options: Mapping[str, Mapping[str, str]] | None = None,
    ) -> UserChoices:
        """Change all of it, or nothing; an empty text removes a choice.

        `model` is for new sessions that name no agent, `options` are values by agent and option. Agents and options
        that are unknown are passed over.
        """
        found = await self._stored.find(owner, NAME)
        new = old = _choices(found)
        if model is not None:
            new = replace(new, model=self._known_model(model))
        for agent, values in (options or {}).items():
            if (card := self._cards().get(agent)) is not None:
                new = _with_options(new, card, values)
        if new != old:
            await self._store(owner, found, new)
        return new

    def _known_model(self, model: str) -> str | None:
        known = models_of(self._cards().values())
        if model and model not in known:
            raise Invalid(f"there is no model '{model[:128]}'; there are: {', '.join(known)}", param="model",
                          reason=m.FaultReason.UNKNOWN_MODEL)
        return model or None

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        """The settings of a new session, with the user's choices for options that the session leaves open."""
        card = self._cards().get(agent)
        if card is None or not card.options:
            return settings
        chosen = await self.get(owner)
        options, secrets = chosen.options.get(agent, {}), chosen.secrets.get(agent, {})
        known = {option.name for option in card.options}
        options = {name: value for name, value in options.items() if name in known}
        secrets = {name: value for name, value in secrets.items() if name in known}
        if not options and not secrets:
            return settings
        return replace(settings, options=options | settings.options, secrets=secrets | settings.secrets)

    async def default_agent(self, owner: str) -> str | None:
        """The agent of the chosen model, for a session that names no agent."""
        chosen = (await self.get(owner)).model
        card = models_of(self._cards().values()).get(chosen) if chosen else None
        return card.name if card else None

    async def _store(self, owner: str, found: Resource | None, new: UserChoices) -> None:
        body: dict[str, Any] = msgspec.to_builtins(replace(new, secrets={}))
        secrets = {agent: msgspec.json.encode(values).decode() for agent, values in new.secrets.items()}
        if found is None:
            await self._stored.create(owner, NAME, body, secrets=secrets)
        else:
            await self._stored.update(found, body, secrets=secrets)


def _choices(found: Resource | None) -> UserChoices:
    if found is None:
        return UserChoices()
    secrets = {agent: msgspec.json.decode(values, type=dict[str, str]) for agent, values in found.secrets.items()}
    return msgspec.convert({**found.body, "secrets": secrets}, UserChoices)


def _with_options(old: UserChoices, card: m.AgentCard, values: Mapping[str, str]) -> UserChoices:
    """The choices with new values of options of one agent."""
    known = {name: value for name, value in values.items() if card.option(name) is not None}
    for name, value in known.items():
        _check(card, name, value)
    secret = {option.name for option in card.options if option.kind is m.OptionKind.SECRET}
    plain = {name: value for name, value in known.items() if name not in secret}
    hidden = {name: value for name, value in known.items() if name in secret}
    return replace(
        old, options=_changed(old.options, card.name, plain), secrets=_changed(old.secrets, card.name, hidden))


def _changed(old: dict[str, dict[str, str]], agent: str, values: Mapping[str, str]) -> dict[str, dict[str, str]]:
    kept = {name: value for name, value in {**old.get(agent, {}), **values}.items() if value}
    return {name: options for name, options in {**old, agent: kept}.items() if options}


def _check(card: m.AgentCard, name: str, value: str) -> None:
    option = card.option(name)
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise Invalid(f"{card.name}.{name}: must have at most {MAX_VALUE_BYTES} bytes", param=f"{card.name}.{name}")
    if value and option is not None and option.kind is m.OptionKind.SELECT and value not in option.choices:
        raise Invalid(f"{card.name}.{name}: must be one of {', '.join(option.choices)}", param=f"{card.name}.{name}")


class SettingsSource(Protocol):
    """Fills in the settings of a new session."""

    kinds: tuple[str, ...]
    """The kinds of resources that it fills in from; for a user who has none of them it changes nothing."""

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings: ...


class CombinedDefaults:
    """All sources; a later source gets what the earlier ones have filled in.

    Most users have nothing to fill in, which one read of the store shows; only the sources of the others read more.
    """

    def __init__(self, resources: Resources, *sources: SettingsSource) -> None:
        self._resources, self._sources = resources, sources
        self._kinds = tuple(kind for source in sources for kind in source.kinds)

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        in_use = await self._resources.kinds_in_use(owner, self._kinds)
        for source in self._sources if in_use else ():
            if not in_use.isdisjoint(source.kinds):
                settings = await source.filled(owner, agent, settings)
        return settings
