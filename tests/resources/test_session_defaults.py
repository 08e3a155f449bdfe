"""Each source fills in the settings that the one before it has filled in."""

from dataclasses import dataclass

from msgspec.structs import replace

import gateway.model as m
from gateway.resources.session_defaults import CombinedDefaults


@dataclass(frozen=True)
class Source:
    word: str

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        return replace(settings, system=f"{settings.system or ''}{owner} {agent} {self.word}.")


async def test_sources_follow_each_other() -> None:
    assert await CombinedDefaults().filled("ann", "demo", m.Settings()) == m.Settings()
    filled = await CombinedDefaults(Source("one"), Source("two")).filled("ann", "demo", m.Settings())
    assert filled.system == "ann demo one.ann demo two."
