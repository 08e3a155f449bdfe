"""The profile of a Blade server: which prompt brings about which situation."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from conformance.kit.expect import NotTestable
from conformance.kit.missing_features import Without


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompts(_Part):
    """What to say to the agent so that it does a certain thing."""

    text: str | None = None
    thinking: str | None = None
    tool: str | None = None
    rounds: str | None = None
    ask: str | None = None
    fork: str | None = None
    fork_ask: str | None = None
    fail: str | None = None
    slow: str | None = None
    burst: str | None = None
    bridge: str | None = None
    ui: str | None = None
    plan: str | None = None
    compact: str | None = None
    annotate: str | None = None
    json_reply: str | None = None


class BladeProfile(_Part):
    """Everything the examiners must be told about a server's agent."""

    without: Without = ()
    prompts: Prompts = Prompts()
    rest_chat: str | None = None
    output_schema: dict[str, Any] | None = None

    def prompt(self, situation: str) -> str:
        """What to say to bring about the situation."""
        found: str | None = getattr(self.prompts, situation)
        return found if found is not None else _missing(f"prompts.{situation}")

    def having(self, situations: Sequence[str]) -> list[str]:
        """Those of the situations that can be brought about."""
        return [name for name in situations if getattr(self.prompts, name) is not None]

    @property
    def rest_address(self) -> str:
        return self.rest_chat if self.rest_chat is not None else _missing("rest_chat")

    @property
    def schema_wanted(self) -> dict[str, Any]:
        return self.output_schema if self.output_schema is not None else _missing("output_schema")


def _missing(entry: str) -> Any:
    raise NotTestable(f"the profile has no entry `{entry}`")
