"""Adds memories that fit a message, and skills, to the system text of a model; and the tool that reads skills."""

from collections.abc import Sequence
from pathlib import Path

import gateway.model as m
from gateway.errors import GatewayError
from gateway.json_values import JsonObject
from gateway.ports import Turn

from .tools import OutputSink, Tool, ToolCallResult, ToolFailed

MEMORIES_HEADING = "What you know of the user from earlier conversations, as far as it fits the message:"


def with_memories(system: str | None, memories: Sequence[m.MemoryRef]) -> str | None:
    """A system text that ends with the memories, if there are any."""
    return "\n\n".join(filter(None, (system, memories_text(memories)))) if memories else system


def memories_text(memories: Sequence[m.MemoryRef]) -> str:
    """The memories, each on a line of its own; nothing if there are none."""
    lines = (f"- {' '.join(memory.content.split())}" for memory in memories)
    return "\n".join((MEMORIES_HEADING, *lines)) if memories else ""


READ_SKILL = m.ToolSpec(
    name="read_skill", title="Read a skill",
    description="Reads a skill: its instructions, or one of its other files. Scripts are shown and not run.",
    parameters={
        "type": "object", "required": ["name"], "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "description": "The name of the skill."},
            "path": {"type": "string", "description": f"A file of the skill; {m.SKILL_FILE} if none is named."},
        },
    },
)
MAX_CHARS = 100_000
"""How much of a file one call returns."""
SKILLS_HEADING = f"You have these skills. Before you do what one is for, read it with the tool {READ_SKILL.name}."
FILES_HEADING = "You have these skills. Before you do what one is for, read its file."


def with_skills(system: str | None, settings: m.Settings, folder: Path | None = None) -> str | None:
    """A system text that names the skills of the session, if it has any; `folder` is where their files are."""
    if not settings.skills:
        return system
    lines = [f"- {skill.name}: {' '.join(skill.description.split())}"
             + (f" File: {folder / skill.name / m.SKILL_FILE}" if folder is not None else "")
             for skill in settings.skills]
    return "\n\n".join(filter(None, (system, "\n".join((SKILLS_HEADING if folder is None else FILES_HEADING, *lines)))))


def skill_tools(turn: Turn) -> list[Tool]:
    """The tool that reads the skills of the session; none if the session has no skills."""
    async def read(input: JsonObject, out: OutputSink) -> ToolCallResult:
        try:
            found = await turn.read_skill(str(input["name"]), str(input.get("path") or m.SKILL_FILE))
        except GatewayError as error:
            raise ToolFailed(error.message) from None
        return ToolCallResult(content=_shown(found))

    return [Tool(READ_SKILL, read)] if turn.settings.skills else []


def _shown(found: m.SkillFile) -> str:
    if found.text is None:
        return f"{found.path} is not text; it has {found.size} bytes."
    text = found.text
    if len(text) > MAX_CHARS:
        text = f"{text[:MAX_CHARS]}\n… (cut after {MAX_CHARS} characters)"
    if found.path != m.SKILL_FILE or not found.files:
        return text
    return "\n".join((text, "Other files of this skill:", *(f"- {path}" for path in found.files)))
