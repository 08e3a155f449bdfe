"""Agents behind one port: the demo, scenarios, a room for each other kind, and what one's own is made with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.ports import Backend

from .backend import DEMO_CARD, DemoBackend, DemoSettings
from .turn import compaction

__all__ = [
    "DEMO_CARD",
    "DemoBackend",
    "DemoSettings",
    "compaction",
]


def _demo(settings: Mapping[str, Any], base: Path) -> Backend:
    return DemoBackend(delay=DemoSettings.model_validate(settings).delay)
