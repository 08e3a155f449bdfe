"""What each dialect brings to the bench, a module each, found by looking: clients that work all day, lists, replays."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from adapters import known_dialects

if TYPE_CHECKING:
    from bench.replay_client import ReplayClient
    from bench.soak_clients import SoakClients
    from bench.stored_sessions import StoredSession


class Visit(NamedTuple):
    """What one client does, from its coming to its leaving, and how many such clients there are at a time."""

    pay: "Callable[[SoakClients], Awaitable[None]]"
    workers: int


class Replay(NamedTuple):
    """One way to read a stored session again, from its beginning, its middle or its end; it returns how much came."""

    name: str
    read: "Callable[[ReplayClient, StoredSession, str], Awaitable[int]]"
    one_turn: bool = False
    """Whether a stream of the dialect is one turn, so that the whole session is one turn."""
    from_zero_only: bool = False


class Addition(NamedTuple):
    """A resource of which a client creates many: where, with which body, and how many there may be before the last."""

    name: str
    path: str
    body: "Callable[[int], dict[str, object]]"
    most: int


def find_visits() -> dict[str, Visit]:
    """All visits, by name: the `VISITS` of every module of this package."""
    return {name: visit for module in _modules() for name, visit in module.VISITS.items()}


def find_lists() -> list[str]:
    """The paths of the lists of sessions: the `LISTS` of the modules that have some."""
    return [path for module in _modules() for path in getattr(module, "LISTS", ())]


def find_replays() -> list[Replay]:
    """All ways to read a session again: the `REPLAYS` of the modules that have some."""
    return [replay for module in _modules() for replay in getattr(module, "REPLAYS", ())]


def find_pages() -> "dict[str, Callable[[ReplayClient, StoredSession, str], Awaitable[int]]]":
    """Lists of events of which a page can be read anywhere, by name: the `PAGES` of the modules that have some."""
    return {name: read for module in _modules() for name, read in getattr(module, "PAGES", {}).items()}


def find_additions() -> list[Addition]:
    """The resources that are created in great number: the `ADDITIONS` of the modules that have some."""
    return [addition for module in _modules() for addition in getattr(module, "ADDITIONS", ())]


def find_filters() -> dict[str, str]:
    """The paths of filtered lists and of searches, by name: the `FILTERS` of the modules that have some."""
    return {name: path for module in _modules() for name, path in getattr(module, "FILTERS", {}).items()}


def _modules() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def unvisited() -> list[str]:
    """The dialects that no client here speaks."""
    return [name for name in known_dialects() if name not in {module.name for module in pkgutil.iter_modules(__path__)}]
