"""The `demo` kind: an embedded, deterministic agent that obeys directives."""

from .backend import DEMO_CARD, DemoBackend, DemoSettings
from .turn import compaction

__all__ = [
    "DEMO_CARD",
    "DemoBackend",
    "DemoSettings",
    "compaction",
]
