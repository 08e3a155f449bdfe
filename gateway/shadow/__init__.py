"""A second agent behind the first: it is told the same, nobody hears it, and where the two differ is written down."""

from .backend import ShadowBackend
from .report import Reporter
from .structure import Structure, differences

__all__ = ["Reporter", "ShadowBackend", "Structure", "differences"]
