"""The shadow: a second agent gets the same turns as the first, and the differences are reported."""

from .backend import ShadowBackend, ShadowOptions, shadowed
from .comparison import ShadowReport, TurnStructure, differences

__all__ = [
    "ShadowBackend",
    "ShadowOptions",
    "ShadowReport",
    "TurnStructure",
    "differences",
    "shadowed",
]
