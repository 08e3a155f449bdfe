"""What each dialect brings to the bench, a module each, found by looking: clients that work all day, lists, replays."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from adapters import known_dialects

if TYPE_CHECKING:
    import aiohttp

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
    body: "Callable[[int], dict[str, object] | bytes]"
    """(its number) → what is sent as JSON, or the bytes of another content type."""
    most: int
    content_type: str = "application/json"


class Stream(NamedTuple):
    """One client that sends a message in a session of its own and reads the reply; it returns how many deltas came."""

    name: str
    read: "Callable[[aiohttp.ClientSession, str, str], Awaitable[int]]"
    """(client, address, message) → deltas."""
    aim: float | None = None
    """How many times the CPU of a delta of AAP a delta may cost at most."""


Watch = Callable[[str, str], list[bytes]]
"""(session, turn) → what a client that watches the session sends, one after the other."""


def find_streams() -> dict[str, Stream]:
    """The clients of all dialects, by dialect: the `STREAM` of the modules that have one."""
    return {_name(module): module.STREAM for module in _modules() if hasattr(module, "STREAM")}


def find_watches() -> dict[str, Watch]:
    """What clients that watch a session send, by dialect: the `watch` of the modules that have one."""
    return {_name(module): module.watch for module in _modules() if hasattr(module, "watch")}


def find_idle_watches() -> dict[str, Watch]:
    """What clients send whose stream stays open though nothing happens: the `IDLE_WATCH` of the modules with one."""
    return {_name(module): module.IDLE_WATCH for module in _modules() if hasattr(module, "IDLE_WATCH")}


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


def find_schedules() -> list[Addition]:
    """The calls that create a schedule: the `SCHEDULE` of the modules that have one."""
    return [module.SCHEDULE for module in _modules() if hasattr(module, "SCHEDULE")]


def find_filters() -> dict[str, str]:
    """The paths of filtered lists and of searches, by name: the `FILTERS` of the modules that have some."""
    return {name: path for module in _modules() for name, path in getattr(module, "FILTERS", {}).items()}


def _name(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def _modules() -> list[ModuleType]:
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names]


def unvisited() -> list[str]:
    """The dialects that no client here speaks."""
    return [name for name in known_dialects() if name not in {module.name for module in pkgutil.iter_modules(__path__)}]
