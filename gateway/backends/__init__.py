"""Agents behind one port: the demo, scenarios, and what a third backend is made with."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gateway.model import AgentCard
from gateway.ports import Backend

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .pen import Pen
from .round import Round
from .scenario import Scenario, ScriptedSettings
from .scenario import load as load_scenario
from .scripted import ScriptedBackend
from .tools import Result, Tool, ToolFailed, builtin, enabled

Factory = Callable[[Mapping[str, Any], Path], Backend]
"""(what config says about the agent, the folder its paths start from) → the agent."""

SETTINGS: dict[str, type[BaseModel]] = {"demo": DemoSettings, "scripted": ScriptedSettings}
"""What config may say about each kind of backend."""


def _demo(settings: Mapping[str, Any], base: Path) -> Backend:
    return DemoBackend(delay=DemoSettings.model_validate(settings).delay)


def _scripted(settings: Mapping[str, Any], base: Path) -> Backend:
    return ScriptedBackend(load_scenario(base / ScriptedSettings.model_validate(settings).scenario))


BACKENDS: dict[str, Factory] = {"demo": _demo, "scripted": _scripted}
"""Every kind of backend, by the word config uses for it."""

_CARDS = {"demo": DEMO_CARD, "scripted": AgentCard(name="scripted", title="Scripted agent")}


def card_of(kind: str, settings: Mapping[str, Any]) -> AgentCard:
    """What an agent of that kind is known as, unless config says more."""
    return _CARDS[kind]


__all__ = [
    "BACKENDS",
    "DEMO_CARD",
    "SETTINGS",
    "DemoBackend",
    "DemoSettings",
    "Factory",
    "Pen",
    "Result",
    "Round",
    "Scenario",
    "ScriptedBackend",
    "ScriptedSettings",
    "Tool",
    "ToolFailed",
    "builtin",
    "card_of",
    "enabled",
    "load_scenario",
]
