"""Agents behind one port: the demo, scenarios, a room for each other kind, and what one's own is made with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.ports import Backend

from .backend import ScriptedBackend, ScriptedSettings
from .scenario_loader import Scenario, load_scenario

__all__ = [
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "load_scenario",
]


def _scripted(settings: Mapping[str, Any], base: Path) -> Backend:
    return ScriptedBackend(load_scenario(base / ScriptedSettings.model_validate(settings).scenario))
