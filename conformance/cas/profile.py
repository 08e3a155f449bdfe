"""The profile of a CAS server: which prompt brings about which situation, and what was set up differently."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.kit.expect import NotTestable
from conformance.kit.missing_features import Without

TOOLSET = "agent_toolset_20260401"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompts(_Part):
    """What to say to the agent so that it does a certain thing."""

    text: str | None = None
    thinking: str | None = None
    slow: str | None = None
    burst: str | None = None
    busy: str | None = None
    fail: str | None = None
    refuse: str | None = None
    max_tokens: str | None = None
    permit: str | None = None
    custom_tool: str | None = None
    parallel: str | None = None
    fork: str | None = None
    fork_ask: str | None = None


class ServerTool(_Part):
    """A tool of the server and the prompt that makes the agent call it."""

    name: str
    prompt: str


class CustomTool(_Part):
    """The tool the examiners declare."""

    name: str
    description: str
    input_schema: dict[str, Any]


class CasProfile(_Part):
    """Everything the examiners must be told about a server and its agent."""

    without: Without = ()
    agent: str | None = None
    environment: str | None = None
    model: str | None = None
    environment_config: dict[str, Any] = {"type": "cloud"}
    heartbeat: float | None = Field(default=None, gt=0)
    stream_start: Literal["turn", "history", "tail"] = "turn"
    metadata_update: Literal["replace", "merge"] = "replace"
    prompts: Prompts = Prompts()
    allowed_tool: ServerTool | None = None
    asked_tool: ServerTool | None = None
    other_tools: tuple[str, ...] = ()
    custom_tool: CustomTool | None = None

    def prompt(self, situation: str) -> str:
        """What to say to bring about the situation."""
        found: str | None = getattr(self.prompts, situation)
        return found if found is not None else _missing(f"prompts.{situation}")

    def server_tool(self, which: str) -> ServerTool:
        found: ServerTool | None = getattr(self, which)
        return found if found is not None else _missing(which)

    @property
    def policies(self) -> dict[str, str]:
        """What the examiners' agent may do with which server tool."""
        found = dict.fromkeys(self.other_tools, "always_allow")
        if self.allowed_tool is not None:
            found[self.allowed_tool.name] = "always_allow"
        if self.asked_tool is not None:
            found[self.asked_tool.name] = "always_ask"
        return found

    @property
    def custom_tools(self) -> list[dict[str, Any]]:
        return [{"type": "custom", **self.custom_tool.model_dump()}] if self.custom_tool is not None else []


def toolset(policies: dict[str, str]) -> list[dict[str, Any]]:
    """A toolset with these tools and policies."""
    configs = [{"name": name, "permission_policy": {"type": policy}} for name, policy in policies.items()]
    return [{"type": TOOLSET, "enabled_tools": list(policies), "configs": configs}] if policies else []


def _missing(entry: str) -> Any:
    raise NotTestable(f"the profile has no entry `{entry}`")
