"""A second agent behind the first: it is told the same, nobody hears it, and where the two differ is written down."""

from .backend import ShadowBackend
from .comparison import ShadowReport, TurnStructure, differences

__all__ = [
    "ShadowBackend",
    "ShadowReport",
    "TurnStructure",
    "differences",
]
