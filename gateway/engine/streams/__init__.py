"""Subscribers are positions in the log: they catch up from it, and then share what is projected live."""

from .cursor import Cursor
from .hub import Hub

__all__ = [
    "Cursor",
    "Hub",
]
