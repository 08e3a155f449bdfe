"""config.yaml and DRAGOMAN_* variables → typed settings; problems with their places, all at once."""

from .access import load_certificate, make_tls_context
from .loader import TEMPLATE, ConfigProblems, load_config, make_config
from .retention import RetentionRule, RetentionSettings
from .routes import RouteSettings, WayBackSettings
from .settings import (
    AgentSettings,
    CapabilitySettings,
    Config,
    DialectSettings,
    LimitSettings,
    LoggingSettings,
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
    "LimitSettings",
    "LoggingSettings",
    "OidcSettings",
    "OptionSettings",
    "RetentionRule",
    "RetentionSettings",
    "RouteSettings",
    "ToolSettings",
    "WayBackSettings",
    "load_certificate",
    "load_config",
    "make_config",
    "make_tls_context",
]
