"""The `scripted` kind: an agent that plays a scenario from a YAML file."""

from .backend import ScriptedBackend, ScriptedSettings
from .scenario_loader import Scenario, load_scenario

__all__ = [
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "load_scenario",
]
