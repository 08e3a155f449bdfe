"""Faults: ways of being wrong, each with a name, a sentence, and the requirements that must catch it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, TypeVar

Server = TypeVar("Server", bound=type[Any])


@dataclass(frozen=True)
class Fault:
    """One wrong server, and who must notice."""

    name: str
    sentence: str
    requirements: tuple[str, ...]
    cases: tuple[str, ...]
    server: type[Any]


def fault(*requirements: str, cases: str) -> Callable[[Server], Server]:
    """Make a fault of a server class: these requirements must fail on it, by (at least) these cases."""

    def mark(server: Server) -> Server:
        name = re.sub(r"(?<!^)(?=[A-Z])|(?<=[a-z])(?=[0-9])", "-", server.__name__).lower()
        sentence = " ".join((server.__doc__ or "").split())
        server.fault = Fault(name, sentence, requirements, tuple(cases.split()), server)
        return server

    return mark


def faults_of(*modules: ModuleType) -> tuple[Fault, ...]:
    """The faults these modules define, in the order they are written."""
    found = [vars(item).get("fault") for module in modules for item in vars(module).values() if isinstance(item, type)]
    return tuple(item for item in found if isinstance(item, Fault))
