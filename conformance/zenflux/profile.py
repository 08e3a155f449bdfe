"""The profile of a ZenFlux server: which prompt brings about which situation."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from conformance.kit.expect import NotTestable
from conformance.kit.missing_features import Without

Topic = Literal["recommended", "preface", "intent", "billing", "search", "knowledge"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompts(_Part):
    """What to say to the agent so that it does a certain thing."""

    text: str | None = None
    thinking: str | None = None
    tool: str | None = None
    permit: str | None = None
    ask: str | None = None
    long_run: str | None = None
    rollback: str | None = None
    annotate: str | None = None
    fail: str | None = None
    slow: str | None = None
    burst: str | None = None
    title: str | None = None
    compact: str | None = None
    image: str | None = None


class Execution(_Part):
    """A tool that the server carries out for anybody, and what to give it."""

    tool: str
    input: dict[str, Any] = {}


class ZenfluxProfile(_Part):
    """Everything the examiners must be told about a server and its agent."""

    without: Without = ()
    agent: str | None = None
    repeatable: bool = False
    heartbeat: float | None = Field(default=None, gt=0)
    management: bool = False
    execute: Execution | None = None
    prompts: Prompts = Prompts()
    annotations: tuple[Topic, ...] = ()

    def prompt(self, situation: str) -> str:
        """What to say to bring about the situation."""
        found: str | None = getattr(self.prompts, situation)
        if found is None:
            raise NotTestable(f"the profile has no entry `prompts.{situation}`")
        return found

    @property
    def has_confirmations(self) -> bool:
        """Whether anything is said to wait for the user."""
        return self.prompts.permit is not None or self.prompts.ask is not None

    def needs_annotation(self, topic: str) -> None:
        """NotTestable unless `annotate` is said to bring this about."""
        if topic not in self.annotations:
            raise NotTestable(f"the profile does not list `{topic}` in `annotations`")
