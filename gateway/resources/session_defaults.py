"""What a new session gets where it says nothing, from several resources, one after another."""

from typing import Protocol

import gateway.model as m


class SettingsSource(Protocol):
    """Fills in the settings of a new session."""

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings: ...


class CombinedDefaults:
    """All sources; a later source gets what the earlier ones have filled in."""

    def __init__(self, *sources: SettingsSource) -> None:
        self._sources = sources

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        for source in self._sources:
            settings = await source.filled(owner, agent, settings)
        return settings
