"""config.yaml and DRAGOMAN_* variables → typed settings; problems with their places, all at once."""

from .access import load_certificate, server_context
from .cards import merge_card
from .reading import TEMPLATE, ConfigProblems, load_config
from .settings import (
    AgentSettings,
    CapabilitySettings,
    Config,
    DialectSettings,
    JournalSettings,
    Limits,
    OidcSettings,
    OptionSettings,
    ToolSettings,
)

__all__ = [
    "TEMPLATE",
    "AgentSettings",
    "CapabilitySettings",
    "Config",
    "ConfigProblems",
    "DialectSettings",
    "JournalSettings",
    "Limits",
    "OidcSettings",
    "OptionSettings",
    "ToolSettings",
    "load_certificate",
    "load_config",
    "merge_card",
    "server_context",
]
