"""The examiners as a pytest plugin: `pytest --conform-dialect aap --conform-url URL`; idle if no dialect is named."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

OPTIONS: tuple[tuple[str, dict[str, object]], ...] = (
    ("dialect", {"help": "the dialect to examine, such as aap; every requirement becomes a test"}),
    ("url", {"help": "where the server is, as `dragoman serve` prints it: http://localhost:8080/aap"}),
    ("key", {"help": "the bearer key, struck out of everything; or set CONFORM_KEY"}),
    ("profile", {"help": "how to bring about situations (YAML)"}),
    ("level", {"default": "may", "help": "must, should or may: how far down to ask"}),
    ("baseline", {"help": "known failures, each with reason and expiry (YAML)"}),
    ("requirements", {"help": "the frozen set to judge by, such as 2026-11"}),
    ("timeout", {"type": float, "default": 10.0, "help": "seconds to wait for any one answer"}),
    ("report", {"action": "append", "default": [], "help": "html, junit, json, markdown or badge; or FORMAT=PATH"}),
    ("allow-destructive", {"action": "store_true", "help": "also ask what may change more than the suite has made"}),
    ("allow-incomplete", {"action": "store_true", "help": "succeed even if a MUST could not be tested"}),
)


def pytest_addoption(parser: "pytest.Parser") -> None:
    """The options of the command, each with --conform- before it."""
    group = parser.getgroup("conform", "conformance of a server")
    for name, about in OPTIONS:
        group.addoption(f"--conform-{name}", **about)


def pytest_configure(config: "pytest.Config") -> None:
    """Begin an examination, if one is asked for; whatever is not asked for is not even imported."""
    if config.getoption("conform_dialect") is not None:
        from conformance.kit.pytest_items import Examiners

        config.pluginmanager.register(Examiners.from_config(config), "conform-examiners")
