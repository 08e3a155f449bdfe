"""Agents behind one port: the demo, scenarios, a room for each other kind, and what one's own is made with."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.errors import NotFound
from gateway.model import AgentCard
from gateway.ports import Backend
from gateway.speech import Pen

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .imported import imported, is_import
from .kind import Factory, Kind
from .replayed import Replays
from .round import Round
from .scenario import Scenario, ScriptedSettings
from .scenario import load as load_scenario
from .scripted import ScriptedBackend
from .sources import files_of, is_stale
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
"""The kinds of backends that need nothing to be imported, by the word config.yaml uses for them."""


def known_kinds() -> list[str]:
    """Every kind there is: those above, and the rooms of this house, each with a `KIND` of its own."""
    rooms = (folder.name for folder in Path(__file__).parent.iterdir() if (folder / "__init__.py").is_file())
    return sorted((*KINDS, *rooms))


def kind_of(word: str, base: Path) -> Kind:
    """The kind a word of config.yaml stands for: one of ours, or a class of the user's as `module:Class`."""
    if is_import(word):
        return imported(word, base)
    if word not in known_kinds():
        raise NotFound(f"there is no backend '{word}'")
    if word in KINDS:
        return KINDS[word]
    kind: Kind = importlib.import_module(f"gateway.backends.{word}").KIND
    return kind


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
    "files_of",
    "is_stale",
    "kind_of",
    "known_kinds",
    "load_scenario",
]
