"""Each source fills in the settings that the one before it has filled in, if its user has anything to fill in."""

from collections.abc import Collection
from dataclasses import dataclass

from msgspec.structs import replace

import gateway.model as m
from gateway.resources.user_settings import CombinedDefaults
from gateway.storage.resources import MemoryResources


@dataclass(frozen=True)
class Source:
    word: str
    kinds: tuple[str, ...] = ("agent",)

    async def filled(self, owner: str, agent: str, settings: m.Settings) -> m.Settings:
        return replace(settings, system=f"{settings.system or ''}{owner} {agent} {self.word}.")


class CountedResources(MemoryResources):
    """Counts the reads."""

    reads = 0

    async def kinds_in_use(self, owner: str, kinds: Collection[str]) -> frozenset[str]:
        self.reads += 1
        return await super().kinds_in_use(owner, kinds)


async def test_sources_follow_each_other() -> None:
    resources = CountedResources(lambda: 1.0)
    await resources.create("agent", "ann", {})
    assert await CombinedDefaults(resources).filled("ann", "demo", m.Settings()) == m.Settings()
    defaults = CombinedDefaults(resources, Source("one"), Source("two"), Source("three", ("skill",)))
    assert (await defaults.filled("ann", "demo", m.Settings())).system == "ann demo one.ann demo two."
    resources.reads = 0
    assert (await defaults.filled("bob", "demo", m.Settings())) == m.Settings(), "bob has nothing to fill in"
    assert resources.reads == 1
    await resources.create("skill", "bob", {})
    assert (await defaults.filled("bob", "demo", m.Settings())).system == "bob demo three.", "a change counts at once"
