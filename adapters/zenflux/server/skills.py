"""ZenFlux's skills: the gateway's skills as ZenFlux spells them."""

from typing import Any

from adapters.zenflux.bodies import ShownSkillBody, SkillFileBody, spell
from adapters.zenflux.wire import ZenfluxSettings
from gateway.http import Context
from gateway.json_values import JsonValue
from gateway.resources import StoredSkill

LIBRARY = "global"
"""What stands for the library in place of an agent."""
LANGUAGES = {
    "py": "python", "sh": "bash", "bash": "bash", "js": "javascript", "mjs": "javascript", "ts": "typescript",
    "json": "json", "yaml": "yaml", "yml": "yaml", "md": "markdown", "html": "html", "css": "css", "sql": "sql",
    "xml": "xml", "toml": "toml", "rb": "ruby", "go": "go", "rs": "rust", "csv": "csv",
}
PLAIN_TEXT = "text"
BINARY = "this file is not text and cannot be shown"


def skill_agent(agent_id: str | None) -> str | None:
    """The agent whose skill is meant; None for the library."""
    return None if agent_id in (None, "", LIBRARY) else agent_id


def skill_view(skill: StoredSkill) -> dict[str, Any]:
    """What the table needs to show a skill."""
    body = skill.body
    return {
        "name": skill.name, "description": body.description, "agent_id": skill.agent_id or LIBRARY,
        "enabled": body.enabled, "priority": body.priority, "preferred_for": list(body.preferred_for),
        "scripts": skill.paths("scripts"), "resources": skill.paths("resources"), "text": body.text,
        "created_at": skill.created_at,
    }


def summary_body(context: Context[ZenfluxSettings], skill: StoredSkill) -> JsonValue:
    return context.table.object("skill.summary", ShownSkillBody(**skill_view(skill)))


def detail_body(context: Context[ZenfluxSettings], skill: StoredSkill) -> JsonValue:
    return context.table.object("skill.detail", ShownSkillBody(**skill_view(skill)))


def file_body(context: Context[ZenfluxSettings], skill: StoredSkill, kind: str, file: str, content: bytes) -> JsonValue:
    """A file; what is not UTF-8 is named and not shown."""
    try:
        text: str | None = content.decode()
    except UnicodeDecodeError:
        text = None
    return spell(context.table, SkillFileBody(
        name=skill.name, kind=kind, file=file, text=text, binary=text is None, size=len(content),
        language=LANGUAGES.get(file.rpartition(".")[2].lower(), PLAIN_TEXT), message=BINARY if text is None else None))
