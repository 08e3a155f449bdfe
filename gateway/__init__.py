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
        _refuse_hidden_packages()
        from . import embedded_gateway

        return getattr(embedded_gateway, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _refuse_hidden_packages() -> None:
    """Raise `ImportError` if a module of the program has the name of a package that is installed beside this one."""
    from importlib.util import find_spec
    from pathlib import Path

    ours = Path(__file__).parents[1]
    for name in ("adapters", "mappings"):
        found = find_spec(name)
        if found is not None and found.origin is not None and Path(found.origin).parents[1] != ours:
            raise ImportError(
                f"{found.origin} has the name of a package of Dragoman, which cannot be imported beside it; "
                "put it into a package of your own, or run the gateway as a process (`dragoman serve`)")
