"""An agent as clients may know it: its tools, its options, and what it can take and give."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from .content import Settings, ToolSpec
from .vocabulary import Permission


class OptionKind(StrEnum):
    TEXT = "text"
    SECRET = "secret"  # noqa: S105  # the name of a kind, not a password
    SELECT = "select"


class AgentOption(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something a client may set for its session; a select's default is one of its choices."""

    name: str
    kind: OptionKind = OptionKind.TEXT
    default: str = ""
    title: str | None = None
    description: str | None = None
    choices: tuple[str, ...] = ()


class AgentTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool the server carries out, and what an agent may do with it where the session says nothing."""

    spec: ToolSpec
    permission: Permission = Permission.ALLOW


class Capabilities(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent can do; a word that is missing is not supported."""

    streaming: tuple[str, ...] = ("delta", "message", "none")
    history: tuple[str, ...] = ("full", "compacted")
    images: tuple[str, ...] = ()
    client_tools: bool = True


class AgentCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    version: str = "1.0.0"
    title: str | None = None
    description: str | None = None
    model: str | None = None
    tools: tuple[AgentTool, ...] = ()
    options: tuple[AgentOption, ...] = ()
    capabilities: Capabilities = Capabilities()

    def tool(self, name: str) -> AgentTool | None:
        return next((tool for tool in self.tools if tool.spec.name == name), None)

    def takes_image(self, url: str) -> bool:
        return self.image_kind(url) in self.capabilities.images

    @staticmethod
    def image_kind(url: str) -> str:
        """How a picture is given: as `data` in its address, or to be fetched by `http`."""
        return "data" if url.startswith("data:") else "http"

    def option(self, name: str) -> AgentOption | None:
        return next((option for option in self.options if option.name == name), None)

    def filled(self, settings: Settings) -> Settings:
        """The settings with the defaults of every option nobody set."""
        options = {o.name: o.default for o in self.options if o.kind is not OptionKind.SECRET} | settings.options
        secrets = {o.name: o.default for o in self.options if o.kind is OptionKind.SECRET} | settings.secrets
        return replace(settings, options=options, secrets=secrets)
