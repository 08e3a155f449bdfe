"""The `demo` kind: an embedded, deterministic agent that obeys directives."""

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
