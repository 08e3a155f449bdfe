"""Agents behind one port: the demo, scenarios, and what a third backend is made with."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gateway.model import AgentCard
from gateway.ports import Backend

from .demo import DEMO_CARD, DemoBackend, DemoSettings, demo
from .pen import Pen
from .round import Round
from .tools import Result, Tool, ToolFailed, builtin, enabled

Factory = Callable[[Mapping[str, Any], Path], Backend]
"""(what config says about the agent, the folder its paths start from) → the agent."""

SETTINGS: dict[str, type[BaseModel]] = {"demo": DemoSettings}
"""What config may say about each kind of backend."""

BACKENDS: dict[str, Factory] = {
    "demo": lambda settings, base: demo(DemoSettings.model_validate(settings), base),
}
"""Every kind of backend, by the word config uses for it."""

CARDS: dict[str, AgentCard] = {"demo": DEMO_CARD}


def card_of(kind: str, settings: Mapping[str, Any]) -> AgentCard:
    """What an agent of that kind is known as, unless config says more."""
    return CARDS[kind]


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
    "Tool",
    "ToolFailed",
    "builtin",
    "card_of",
    "enabled",
]
