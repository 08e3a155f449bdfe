"""What a new session gets where it says nothing, from several resources, one after another."""

from typing import Protocol

import gateway.model as m
from gateway.ports import Resources


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
