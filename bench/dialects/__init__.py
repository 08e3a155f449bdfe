"""The clients of each dialect that work a server all day: a module each, found by looking."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from adapters import known_dialects

if TYPE_CHECKING:
    from bench.soak_clients import SoakClients


class Visit(NamedTuple):
    """What one client does, from its coming to its leaving, and how many such clients there are at a time."""

    pay: "Callable[[SoakClients], Awaitable[None]]"
    workers: int


def find_visits() -> dict[str, Visit]:
    """All visits, by name: the `VISITS` of every module of this package."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: visit for module in names
            for name, visit in importlib.import_module(f"{__name__}.{module}").VISITS.items()}


def unvisited() -> list[str]:
    """The dialects that no client here speaks."""
    return [name for name in known_dialects() if name not in {module.name for module in pkgutil.iter_modules(__path__)}]
