"""Steps: what the parts of a reference server do, each of which can be replaced in one server.

A server is made of parts, objects with names. The public methods of a part are its steps; the public attributes of its
class are its settings. A part takes its own steps through `self` and those of another part through that part, so that
whatever was put in the place of a step is taken instead.

An alteration changes a server after it was made. It is a function of the server, or a class: each public method of the
class takes the place of the step of the same name and is given, as `step`, the step that was there before; each public
attribute takes the place of a setting. The class is given the server if it asks for it.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Step = Callable[..., T]
AsyncStep = Callable[..., Awaitable[T]]
Alteration = Callable[..., Any]


class NoSuchStep(Exception):
    """No part of a server has a step of this name, or several have one."""


def parts_of(server: Any) -> dict[str, Any]:
    """The parts of a server by name; a server that is not made of parts is its own only part."""
    return getattr(server, "parts", None) or {"server": server}


def names_of(part: object) -> list[str]:
    """The steps and settings of a part."""
    return [name for name in dir(type(part)) if not name.startswith("_")]


def part_with(server: Any, name: str) -> Any:
    """The part of a server that has this step or setting."""
    found = {place: part for place, part in parts_of(server).items() if name in names_of(part)}
    if len(found) != 1:
        raise NoSuchStep(f"the parts {', '.join(found)} have a step {name!r}" if found else f"no part has {name!r}")
    return next(iter(found.values()))


def step_of(server: Any, name: str) -> Step[Any]:
    """A step of a server by its name, as it is now."""
    step: Step[Any] = getattr(part_with(server, name), name)
    return step


@dataclass(frozen=True)
class Variant:
    """A kind of server: the reference server, altered when it is made, by one alteration after the other."""

    name: str
    reference: Callable[..., Any]
    alterations: tuple[Alteration, ...]

    def __call__(self, **settings: Any) -> Any:
        server = self.reference(**settings)
        for alteration in self.alterations:
            alter(server, alteration)
        return server


def variant(reference: Callable[..., Any], alteration: type[Any]) -> Variant:
    """The server with this alteration, and with the one that it is to come `after`."""
    former = getattr(alteration, "after", None)
    return Variant(alteration.__name__, reference, (former, alteration) if former else (alteration,))


def variants(reference: Callable[..., Any], *alterations: type[Any]) -> tuple[Variant, ...]:
    """A server for each of these alterations."""
    return tuple(variant(reference, alteration) for alteration in alterations)


def alter(server: Any, alteration: Alteration) -> None:
    """Alter a server."""
    if not isinstance(alteration, type):
        alteration(server)
    else:
        wants_server = "server" in inspect.signature(alteration).parameters
        replace_steps(server, alteration(server=server) if wants_server else alteration())


def replace_steps(server: Any, others: object) -> None:
    """Put the public methods of an object in the place of steps of the same name, and its settings likewise."""
    for name, value in _replacements(type(others)):
        part = part_with(server, name)
        setattr(part, name, partial(getattr(others, name), getattr(part, name)) if callable(value) else value)


def _replacements(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    own = {"after", *(field.name for field in fields(kind))} if is_dataclass(kind) else {"after"}
    return ((name, value) for name, value in vars(kind).items() if name not in own and not name.startswith("_"))
