"""Which files agents read as their configuration, in every spelling that a file system or a client may use."""

from pathlib import Path

from gateway.model.agents import is_agent_configuration, upload_name

DANGEROUS = [
    ".mcp.json", "CLAUDE.md", "claude.MD", "AGENTS.md", "a/b/CLAUDE.md", ".claude/settings.json",
    ".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/post-checkout", ".cursor/rules/x.mdc", ".codex/config.toml",
    "GEMINI.md", ".envrc", ".gemini/settings.json", ".vscode/tasks.json", ".github/copilot-instructions.md",
    "opencode.json", "HEAD", "CLAUDE.md.", "ＣＬＡＵＤＥ.md",
]
PLAIN = ["readme.md", "a/b.txt", ".gitignore", "CLAUDE.md.txt", "notes-CLAUDE.md", "git/hooks/x", "config"]


def test_which_names_are_configuration() -> None:
    assert [name for name in DANGEROUS if not is_agent_configuration(name)] == []
    assert [name for name in PLAIN if is_agent_configuration(name)] == []
    assert [name for name in DANGEROUS if is_agent_configuration(upload_name(Path(name).name))] == []
    assert upload_name("readme.md") == "readme.md"
