"""Which files agents read as their own configuration: instructions, MCP servers, hooks, settings of their tools.

A coding agent takes such a file from its working folder as if its operator had written it, and some of them name
commands to run. A client that uploads one would configure the agent.
"""

from unicodedata import normalize

HARMLESS = frozenset((
    ".gitignore", ".gitkeep", ".keep", ".dockerignore", ".editorconfig", ".npmignore", ".prettierignore",
))
"""Hidden files that name no command; every other hidden file or folder counts as configuration."""
INSTRUCTIONS = frozenset((
    "agent.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md", "codex.md", "gemini.md", "qwen.md",
    "warp.md", "opencode.json", "opencode.jsonc", "mcp.json", "head",
))
"""Files without a dot before them. `HEAD` makes a folder a git repository, whose `config` names commands."""


def is_configuration(path: str) -> bool:
    """Whether an agent may read this file, or one of the folders above it, as configuration."""
    names = (normalize("NFKC", name).casefold().rstrip(". ") for name in path.replace("\\", "/").split("/"))
    return any(name in INSTRUCTIONS or (name.startswith(".") and name not in HARMLESS) for name in names)


def harmless_name(name: str) -> str:
    """The name under which an uploaded file is stored: another one if agents read files of that name."""
    return f"uploaded-{name.lstrip('.')}" if is_configuration(name) else name
