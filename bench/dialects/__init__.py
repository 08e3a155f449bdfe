"""What each dialect brings to the bench, a module each, found by looking: clients that work all day, and lists."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from types import ModuleType
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
    return {name: visit for module in _modules() for name, visit in module.VISITS.items()}


def find_lists() -> list[str]:
    """The paths of the lists of sessions: the `LISTS` of the modules that have some."""
    return [path for module in _modules() for path in getattr(module, "LISTS", ())]


def _modules() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def unvisited() -> list[str]:
    """The dialects that no client here speaks."""
    return [name for name in known_dialects() if name not in {module.name for module in pkgutil.iter_modules(__path__)}]
