"""The `scripted` kind: an agent that plays a scenario from a YAML file."""

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
