"""Agents behind the port `Backend`, a package per kind; and the classes that users' agents are made with."""

from gateway.client import EventWriter
from gateway.old_imports import renamed

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .kinds import KINDS, BackendFactory, BackendKind, kind_of, known_kinds
from .replay import SessionReplayer
from .scripted import Scenario, ScriptedBackend, ScriptedSettings, load_scenario
from .tool_executor import ToolExecutor
from .tools import Tool, ToolCallResult, ToolFailed, builtin_tools, enabled_tools
from .user_modules import is_stale, watched_files

__all__ = [
    "DEMO_CARD",
    "KINDS",
    "BackendFactory",
    "BackendKind",
    "DemoBackend",
    "DemoSettings",
    "EventWriter",
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "SessionReplayer",
    "Tool",
    "ToolCallResult",
    "ToolExecutor",
    "ToolFailed",
    "builtin_tools",
    "enabled_tools",
    "is_stale",
    "kind_of",
    "known_kinds",
    "load_scenario",
    "watched_files",
]

__getattr__ = renamed(__name__, {
    "Pen": "EventWriter", "Round": "ToolExecutor", "Result": "ToolCallResult", "enabled": "enabled_tools",
    "builtin": "builtin_tools", "Replays": "SessionReplayer", "files_of": "watched_files", "Kind": "BackendKind",
    "Factory": "BackendFactory",
})
