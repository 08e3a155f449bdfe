"""The core: knows what an agent conversation is, and no served dialect by name.

A program that has the gateway inside imports `Dragoman` or `served` from here.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .embedded_gateway import Dragoman, served

__all__ = ["Dragoman", "served"]


def __getattr__(name: str) -> object:
    """Import the server only when a program asks for it: commands begin faster without."""
    if name in __all__:
        from . import embedded_gateway

        return getattr(embedded_gateway, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
