"""The skills of CAS's agents: what they have installed, as CAS spells it; a skill is known by its name."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.cas.wire import CasSettings
from gateway.http import Context
from gateway.resources import SkillService

Named = Sequence[Mapping[str, Any]]
"""Skills as the body of an agent names them."""


def skill_service(context: Context[CasSettings]) -> SkillService:
    return SkillService(context.resources, context.offers.skills, context.agent_service)


async def shown_skills(context: Context[CasSettings], owner: str, agent_id: str, named: Named) -> list[Any]:
    """The skills that an agent has installed, and names that nobody here knows, as its client sent them."""
    service = skill_service(context)
    installed = {one.name: one for one in await service.installed(owner, agent_id) if one.body.enabled}
    known = {one.name for one in await service.library(owner)} if named else set()
    shown: list[Any] = [one for one in named if one["skill_id"] in installed or one["skill_id"] not in known]
    said = {one["skill_id"] for one in shown}
    return shown + [
        {"type": "custom", "skill_id": one.name, "version": str(one.version)}
        for one in installed.values() if one.name not in said]


async def install_named(context: Context[CasSettings], owner: str, agent_id: str, named: Named) -> None:
    """Let an agent have the skills that it names, and no others; a name that nobody here knows has no effect."""
    service = skill_service(context)
    wanted = {str(one["skill_id"]) for one in named}
    installed = {one.name for one in await service.installed(owner, agent_id)}
    for name in installed - wanted:
        await service.remove(owner, name, agent_id)
    known = {one.name for one in await service.library(owner)}
    for name in sorted((wanted & known) - installed):
        await service.install(owner, name, agent_id)
