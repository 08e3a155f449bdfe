"""The shadow: a second agent gets the same turns as the first, and the differences are reported."""

from .backend import ShadowBackend, shadowed
from .comparison import ShadowReport, TurnStructure, differences

__all__ = [
    "ShadowBackend",
    "ShadowReport",
    "TurnStructure",
    "differences",
    "shadowed",
]
