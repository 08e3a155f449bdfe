"""Models of what ZenFlux clients send about agents; fields that have no effect here are kept and given back."""

from typing import Annotated, Any

from pydantic import Field

from gateway.http import WireModel

AgentName = Annotated[str, Field(min_length=1, max_length=100)]
Prompt = Annotated[str, Field(min_length=1, max_length=100_000)]


class ApiAuth(WireModel):
    type: str | None = None
    header: str | None = None
    env: str | None = None


class ApiReference(WireModel):
    """An API of the agent; it is shown, and never called."""

    name: str = Field(min_length=1)
    base_url: str
    auth: ApiAuth | None = None
    doc: str | None = None
    capability: str | None = None
    description: str | None = None


class AgentFields(WireModel):
    """The fields that a new agent and a change of one share."""

    description: str | None = Field(None, max_length=10_000)
    model: str | None = None
    plan_manager_enabled: bool | None = None
    llm: dict[str, Any] | None = None
    enabled_capabilities: dict[str, bool] | None = None
    apis: list[ApiReference] | None = Field(None, max_length=100)
    memory: dict[str, Any] | None = None
    data_dir: str | None = None


class NewAgent(AgentFields):
    agent_id: str | None = None
    name: AgentName
    prompt: Prompt


class AgentChange(AgentFields):
    """What is not named stays."""

    name: AgentName | None = None
    prompt: Prompt | None = None
    is_active: bool | None = None
