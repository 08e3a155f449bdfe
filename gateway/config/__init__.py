"""config.yaml and DRAGOMAN_* variables → typed settings; problems with their places, all at once."""

from .access import load_certificate, make_tls_context
from .loader import TEMPLATE, ConfigProblems, load_config, make_config
from .oidc_settings import OidcSettings
from .retention import RetentionRule, RetentionSettings
from .routes import RouteSettings, WayBackSettings
from .settings import (
    AgentSettings,
    CapabilitySettings,
    Config,
    DialectSettings,
    LimitSettings,
    LoggingSettings,
    OptionSettings,
    ToolSettings,
    WorkspaceSettings,
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
    "WorkspaceSettings",
    "load_certificate",
    "load_config",
    "make_config",
    "make_tls_context",
]
