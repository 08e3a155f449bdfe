"""A skill as the store has it, and as the services of the gateway know it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import Resource

from .skill_files import SkillHead

OFFERED = "offered"
"""Stands for the id of a skill of the operator, which is in no store."""


class SkillContent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored skill; its files stand apart, in the resource `files_id`, and `sizes` has their paths.

    `origin` is the version of the library that a copy was made of; `title` and `metadata` are labels of its owner's.
    """

    description: str
    text: str
    title: str = ""
    metadata: dict[str, str] = {}
    priority: str = "medium"
    preferred_for: tuple[str, ...] = ()
    sizes: dict[str, int] = {}
    files_id: str = ""
    enabled: bool = True
    origin: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSkill:
    """A skill of the library, or the copy of an agent.

    `resource_id` and `version` name it in the store. A skill of the operator is in no store, and cannot be changed.
    """

    name: str
    body: SkillContent
    created_at: float
    updated_at: float
    agent_id: str | None = None
    resource_id: str = ""
    version: int = 1
    folder: Path | None = None

    @property
    def ref(self) -> m.SkillRef:
        """The skill for a session."""
        return m.SkillRef(
            name=self.name, description=self.body.description, skill_id=self.resource_id or OFFERED,
            version=self.version)

    def paths(self, below: str) -> list[str]:
        """The files below one folder of the skill, as paths inside that folder."""
        return [path.removeprefix(f"{below}/") for path in self.body.sizes if path.startswith(f"{below}/")]


def file_sizes(files: Mapping[str, bytes]) -> dict[str, int]:
    return {path: len(read) for path, read in sorted(files.items())}


def skill_content(head: SkillHead, text: str) -> SkillContent:
    return SkillContent(
        description=head.description, text=text, priority=head.priority, preferred_for=head.preferred_for)


def written_skill(name: str, body: SkillContent) -> JsonObject:
    written: JsonObject = {**msgspec.to_builtins(body), "name": name}
    return written


def stored_skill(found: Resource, agent_id: str | None = None) -> StoredSkill:
    return StoredSkill(
        name=found.body["name"], body=msgspec.convert(found.body, SkillContent), created_at=found.created_at,
        updated_at=found.updated_at, agent_id=agent_id, resource_id=found.resource_id, version=found.version)
