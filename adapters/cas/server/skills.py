"""The skills of CAS's agents and sessions: the gateway's skills as CAS spells them; a skill is known by its name."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import gateway.model as m
from adapters.cas.bodies import SkillBody, SkillVersionBody
from adapters.cas.wire import CUSTOM_SKILL, LATEST, OFFERED_SKILL, CasSettings
from gateway.errors import GatewayError, Invalid
from gateway.http import Context
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import DialectTable
from gateway.resources import SkillService, StoredSkill

from .resource_routes import not_found_as

Named = Sequence[Mapping[str, Any]]
"""Skills as the body of an agent names them."""
VERSION = re.compile(r"(?:skillver_[A-Za-z0-9_-]+_)?([1-9][0-9]{0,8})")
"""A version by its number, or by its id."""


def skill_service(context: Context[CasSettings]) -> SkillService:
    return SkillService(context.resources, context.offers.skills, context.agent_service)


def version_number(text: str | None, refusal: type[GatewayError] = Invalid) -> int | None:
    """The version that a client names; None for the newest one."""
    if text in (None, "", LATEST):
        return None
    found = VERSION.fullmatch(text)
    if found is None:
        raise refusal(f"version: '{text[:64]}' is no version of a skill", param="version")
    return int(found[1])


# -- of agents and sessions -------------------------------------------------------------------------------------------

async def shown_skills(context: Context[CasSettings], owner: str, agent_id: str, named: Named) -> list[JsonValue]:
    """The skills that an agent has installed, and names that nobody here knows, as its client sent them."""
    service = skill_service(context)
    installed = {one.name: one for one in await service.installed(owner, agent_id) if one.body.enabled}
    known = {one.name for one in await service.library(owner)} if named else set()
    shown: list[Any] = [one for one in named if one["skill_id"] in installed or one["skill_id"] not in known]
    names = {one["skill_id"] for one in shown}
    return shown + [
        {"type": CUSTOM_SKILL, "skill_id": one.name, "version": str(one.body.origin or one.version)}
        for one in installed.values() if one.name not in names]


async def named_skills(context: Context[CasSettings], owner: str, named: Named) -> dict[str, StoredSkill]:
    """The skills of the library that a body names; a name that nobody here knows is passed over."""
    service, found = skill_service(context), dict[str, StoredSkill]()
    known = {one.name for one in await service.library(owner)}
    for one in named:
        name, version = str(one["skill_id"]), version_number(one.get("version"))
        if name in known:
            with not_found_as("Skill", name if version is None else f"{name}, version {version}", refusal=Invalid):
                found[name] = await service.get(owner, name, version=version)
    return found


async def install_named(
    context: Context[CasSettings], owner: str, agent_id: str, named: Named, known: Mapping[str, StoredSkill],
) -> None:
    """Let an agent have the skills that it names, and no others; `known` has those of the library.

    An installed copy stays, unless the agent names another version of it.
    """
    service = skill_service(context)
    pinned = {str(one["skill_id"]): version_number(one.get("version")) for one in named}
    installed = set[str]()
    for one in await service.installed(owner, agent_id):
        if one.name in pinned and pinned[one.name] in (None, one.body.origin):
            installed.add(one.name)
        else:
            await service.remove(owner, one.name, agent_id)
    for name in sorted(known.keys() - installed):
        await service.install(owner, name, agent_id, version=known[name].version)


def session_skills(named: Named, known: Mapping[str, StoredSkill]) -> tuple[list[Any], tuple[m.SkillRef, ...]]:
    """The skills of a session that names its own: as its client sees them, and for its agent."""
    shown = [
        {**one, "version": str(known[one["skill_id"]].version)} if one["skill_id"] in known else one for one in named]
    return shown, tuple(one.ref for one in known.values())


# -- what clients see -------------------------------------------------------------------------------------------------

def source_of(skill: StoredSkill) -> str:
    """Who offers a skill: its user, or the operator of the server."""
    return CUSTOM_SKILL if skill.folder is None else OFFERED_SKILL


def skill_body(table: DialectTable, newest: StoredSkill) -> JsonObject:
    return table.object(SkillBody.row, SkillBody(
        id=newest.name, title=newest.body.title or newest.name, source=source_of(newest), version=str(newest.version),
        version_id=version_id(newest), metadata=newest.body.metadata, created_at=newest.created_at,
        updated_at=newest.updated_at,
    ))


def skill_version_body(table: DialectTable, skill: StoredSkill) -> JsonObject:
    return table.object(SkillVersionBody.row, SkillVersionBody(
        id=version_id(skill), skill_id=skill.name, version=str(skill.version), name=skill.name,
        description=skill.body.description, created_at=skill.updated_at,
    ))


def version_id(skill: StoredSkill) -> str:
    return f"skillver_{skill.name}_{skill.version}"
