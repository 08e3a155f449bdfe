"""Models of what ZenFlux clients send about skills."""

from typing import Annotated

from pydantic import Field

from gateway.http import WireModel

SkillName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")]
AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]


class SkillChoice(WireModel):
    """A skill and the agent that it is installed on."""

    skill_name: SkillName
    agent_id: AgentId


class SkillSwitch(SkillChoice):
    enabled: bool


class SkillText(SkillChoice):
    """A new SKILL.md."""

    content: str
