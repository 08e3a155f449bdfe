"""Agents behind the port `Backend`, a package per kind; and the classes that users' agents are made with."""

from gateway.client import EventWriter
from gateway.old_imports import renamed

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .kinds import KINDS, BackendContext, BackendFactory, BackendKind, FeatureSupport, MadeBackend, kind_of, known_kinds
from .mcp import McpToolLists
from .replay import SessionReplayer
from .tool_executor import ToolExecutor
from .tools import BuiltinToolRunner, Tool, ToolCallResult, ToolFailed, builtin_tools, enabled_tools

__all__ = [
    "DEMO_CARD",
    "KINDS",
    "BackendContext",
    "BackendFactory",
    "BackendKind",
    "BuiltinToolRunner",
    "DemoBackend",
    "DemoSettings",
    "EventWriter",
    "FeatureSupport",
    "MadeBackend",
    "McpToolLists",
    "SessionReplayer",
    "Tool",
    "ToolCallResult",
    "ToolExecutor",
    "ToolFailed",
    "builtin_tools",
    "enabled_tools",
    "kind_of",
    "known_kinds",
]

__getattr__ = renamed(__name__, {
    "Pen": "EventWriter", "Round": "ToolExecutor", "Result": "ToolCallResult", "enabled": "enabled_tools",
    "builtin": "builtin_tools", "Replays": "SessionReplayer", "Kind": "BackendKind",
    "Factory": "BackendFactory",
    **{name: f"gateway.backends.scripted:{name}"
       for name in ("Scenario", "ScriptedBackend", "ScriptedSettings", "load_scenario")},
})
