"""An agent as clients may know it: its tools, its options, and what it can take and give."""

from enum import StrEnum
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from .content import Settings, ToolSpec
from .enums import Permission


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


class AgentCapabilities(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent can do; a word that is missing is not supported."""

    streaming: tuple[str, ...] = ("delta", "message", "none")
    history: tuple[str, ...] = ("full", "compacted")
    images: tuple[str, ...] = ()
    client_tools: bool = True


class AgentDirective(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A word that the agent obeys within a message, such as `/think`; `arguments` shows what may follow it."""

    name: str
    effect: str
    arguments: str = ""


class AgentCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    version: str = "1.0.0"
    title: str | None = None
    description: str | None = None
    model: str | None = None
    tools: tuple[AgentTool, ...] = ()
    options: tuple[AgentOption, ...] = ()
    capabilities: AgentCapabilities = AgentCapabilities()
    mcp_servers: tuple[str, ...] = ()
    """The names of the MCP servers that config.yaml gives to the agent."""
    directives: tuple[AgentDirective, ...] = ()
    """The words that the agent obeys within a message, for pages that offer them."""

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


HARMLESS_HIDDEN_FILES = frozenset((
    ".gitignore", ".gitkeep", ".keep", ".dockerignore", ".editorconfig", ".npmignore", ".prettierignore",
))
"""Hidden files that name no command; every other hidden file or folder counts as configuration."""
INSTRUCTION_FILES = frozenset((
    "agent.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md", "codex.md", "gemini.md", "qwen.md",
    "warp.md", "opencode.json", "opencode.jsonc", "mcp.json", "head",
))
"""Files without a dot before them. `HEAD` makes a folder a git repository, whose `config` names commands."""


def is_agent_configuration(path: str) -> bool:
    """Whether an agent may read this file, or one of the folders above it, as configuration."""
    names = (normalize("NFKC", name).casefold().rstrip(". ") for name in path.replace("\\", "/").split("/"))
    return any(
        name in INSTRUCTION_FILES or (name.startswith(".") and name not in HARMLESS_HIDDEN_FILES) for name in names
    )


def upload_name(name: str) -> str:
    """The name under which an uploaded file is stored: another one if agents read files of that name."""
    return f"uploaded-{name.lstrip('.')}" if is_agent_configuration(name) else name


ANY_AGENT = AgentCard(name="", capabilities=AgentCapabilities(images=("http", "data")))
"""The agent of a recording: nobody knows which it was, but it accepted what clients sent."""
