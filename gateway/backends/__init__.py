"""Agents behind one port: the demo, scenarios, and what a third backend is made with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.errors import NotFound
from gateway.model import AgentCard
from gateway.ports import Backend

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .imported import imported, is_import
from .kind import Factory, Kind
from .pen import Pen
from .replayed import Replays
from .round import Round
from .scenario import Scenario, ScriptedSettings
from .scenario import load as load_scenario
from .scripted import ScriptedBackend
from .tools import Result, Tool, ToolFailed, builtin, enabled


def _demo(settings: Mapping[str, Any], base: Path) -> Backend:
    return DemoBackend(delay=DemoSettings.model_validate(settings).delay)


def _scripted(settings: Mapping[str, Any], base: Path) -> Backend:
    return ScriptedBackend(load_scenario(base / ScriptedSettings.model_validate(settings).scenario))


KINDS: dict[str, Kind] = {
    "demo": Kind(make=_demo, card=DEMO_CARD, settings=DemoSettings),
    "scripted": Kind(
        make=_scripted, card=AgentCard(name="scripted", title="Scripted agent"), settings=ScriptedSettings,
    ),
}
"""Every kind of backend that comes with the gateway, by the word config.yaml uses for it."""


def kind_of(word: str, base: Path) -> Kind:
    """The kind a word of config.yaml stands for: one of ours, or a class of the user's as `module:Class`."""
    if is_import(word):
        return imported(word, base)
    if word not in KINDS:
        raise NotFound(f"there is no backend '{word}'")
    return KINDS[word]


__all__ = [
    "DEMO_CARD",
    "KINDS",
    "DemoBackend",
    "DemoSettings",
    "Factory",
    "Kind",
    "Pen",
    "Replays",
    "Result",
    "Round",
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "Tool",
    "ToolFailed",
    "builtin",
    "enabled",
    "kind_of",
    "load_scenario",
]
