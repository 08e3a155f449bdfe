"""The profile of an AAP server: which prompt brings about which situation."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from conformance.kit.expect import NotTestable
from conformance.kit.missing_features import Without


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Prompts(_Part):
    """What to say to the agent so that it does a certain thing."""

    text: str | None = None
    thinking: str | None = None
    slow: str | None = None
    fail: str | None = None
    fail_start: str | None = None
    refuse: str | None = None
    max_tokens: str | None = None
    image_reply: str | None = None
    client_tool: str | None = None
    parallel: str | None = None


class ServerTool(_Part):
    """A tool of the server and the prompt that makes the agent call it."""

    name: str
    prompt: str


class ClientTool(_Part):
    """The tool the examiners declare."""

    name: str
    description: str
    parameters: dict[str, Any]
    title: str | None = None

    @property
    def spec(self) -> dict[str, Any]:
        return self.model_dump(exclude_none=True)


class Options(_Part):
    """Which options to use, and what they may be set to."""

    secret: str | None = None
    select: str | None = None
    values: dict[str, str] = {}


class Images(_Part):
    """What to send as an image."""

    http: str | None = Field(default=None, pattern="^https://")
    data: str | None = Field(default=None, pattern="^data:")


class Listing(_Part):
    """How far to go to see a second page."""

    sessions: int | None = Field(default=None, ge=2, le=5000)


class AapProfile(_Part):
    """Everything the examiners must be told about a server's agent."""

    without: Without = ()
    agent: str | None = None
    repeatable: bool = False
    prompts: Prompts = Prompts()
    first_tool: ServerTool | None = None
    second_tool: ServerTool | None = None
    client_tool: ClientTool | None = None
    options: Options = Options()
    images: Images = Images()
    listing: Listing = Listing()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown in any report."""
        return tuple(self.options.values.values())

    def prompt(self, situation: str) -> str:
        """What to say to bring about the situation."""
        found: str | None = getattr(self.prompts, situation)
        return found if found is not None else _missing(f"prompts.{situation}")

    def server_tool(self, which: str) -> ServerTool:
        found: ServerTool | None = getattr(self, which)
        return found if found is not None else _missing(which)

    @property
    def client_spec(self) -> dict[str, Any]:
        return self.client_tool.spec if self.client_tool is not None else _missing("client_tool")


def _missing(entry: str) -> Any:
    raise NotTestable(f"the profile has no entry `{entry}`")
