"""Dialects by name: the rooms of the embassies are looked up when somebody wants to speak one, and not before."""

import importlib
from functools import cache

from gateway.ports import Dialect
from gateway.upstream import Remote, RemoteAddress


@cache
def dialect(name: str) -> Dialect:
    found: Dialect = importlib.import_module(f"adapters.{name}").DIALECT
    return found


@cache
def speakers() -> tuple[str, ...]:
    """The dialects that can be spoken as a client."""
    names: list[str] = importlib.import_module("adapters").known_dialects()
    return tuple(name for name in names if dialect(name).remote is not None)


def dialled(name: str, address: RemoteAddress) -> Remote:
    """The server at this address, spoken to in this dialect."""
    make = dialect(name).remote
    assert make is not None, "settings name only dialects that are spoken"
    remote: Remote = make(address)
    return remote
