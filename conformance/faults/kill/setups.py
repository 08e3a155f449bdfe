"""The dialects of the kill matrix: how correct and wrong servers of each are made, and how they are examined quickly.

A dialect is in the matrix if it has a suite, and its folder in conformance/faults has a module `setup` with a `SETUP`.
Its `faults.yaml` is beside that module; its `orders.yaml` and `survivors.yaml` are beside its requirements.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from aiohttp import web
from pydantic import BaseModel

import conformance.faults
from conformance.faults.fault import Fault, load_faults
from conformance.faults.local_server import Servable
from conformance.faults.steps import Variant
from conformance.kit.suite import Suite, dialects

KEY = "the-key-of-the-matrix"


def usual_profile(suite: Suite, server: Any) -> BaseModel:
    """The profile that comes with the dialect."""
    return suite.read_profile()


@dataclass(frozen=True, kw_only=True)
class Setup:
    """How one dialect's correct and wrong servers are made, and how they are examined quickly."""

    dialect: str
    server_type: Callable[..., Servable]
    """The correct server."""
    variations: Sequence[Variant] = ()
    """Correct servers that differ from it in ways the protocol allows."""
    profile: Callable[[Suite, Any], BaseModel] = usual_profile
    """(the suite, a server) → the profile that fits."""
    has_keys: bool = True
    """Whether a server is given the key that its clients must have."""
    quicken: Callable[[Any], None] = lambda server: None
    """Shortens the waits of a server, unless they are what is wrong with it."""
    naming: Callable[[str, Any], str] = lambda name, json: name
    """A finer name for a message, where one name stands for several shapes."""
    owner_of: Callable[[str, str], str | None] = lambda method, path: None
    """(method, path with placeholders) → the requirement that such a request succeeds."""

    @property
    def faults(self) -> Mapping[str, Fault]:
        """The wrong servers by their ids: the rows of the dialect's `faults.yaml`."""
        return load_faults(self.dialect)

    def make(self, kind: Callable[..., Servable], key: str = KEY) -> Servable:
        """A server of this kind, correct or wrong."""
        server = kind(key=key) if self.has_keys else kind()
        self.quicken(server)
        return server

    def server(self) -> Servable:
        """A correct server."""
        return self.make(self.server_type)

    def wrong(self, fault: Fault) -> Servable:
        """The server with this fault."""
        return self.make(fault.server)


def examined_dialects() -> tuple[str, ...]:
    """The dialects with a suite and servers to put it to."""
    return tuple(name for name in dialects() if _has_setup(name))


def unexamined_dialects() -> tuple[str, ...]:
    """The dialects with a suite that no server here is examined by."""
    return tuple(name for name in dialects() if not _has_setup(name))


def _has_setup(dialect: str) -> bool:
    return any((Path(folder) / dialect / "setup.py").is_file() for folder in conformance.faults.__path__)


SETUPS = examined_dialects()


@cache
def setup_of(dialect: str) -> Setup:
    """The setup of this dialect; KeyError if there is none."""
    if not _has_setup(dialect):
        raise KeyError(dialect)
    setup: Setup = import_module(f"conformance.faults.{dialect}.setup").SETUP
    return setup


class Routes:
    """Names requests after the routes of the server they are put to."""

    def __init__(self, server: Servable) -> None:
        self._router = server.app().router
        self._mount = server.mount

    async def name(self, request: web.Request) -> str:
        found = await self._router.resolve(request)
        resource = found.route.resource if found.http_exception is None else None
        path = resource.canonical.removeprefix(self._mount) if resource is not None else "?"
        return f"{request.method} {path}"
