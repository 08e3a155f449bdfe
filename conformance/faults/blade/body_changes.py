"""Small ways of bending what a server says."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from conformance.faults.blade.state import Bend


def bending(bends: dict[str, Bend]) -> Mapping[str, Bend]:
    """The bends of a server, by the kind of what is bent."""
    return MappingProxyType(bends)


def setting(**members: Any) -> Bend:
    """Every such body has these members instead of its own."""
    return lambda body: {**body, **members}


def without(*names: str) -> Bend:
    """No such body has these members."""
    return lambda body: {name: value for name, value in body.items() if name not in names}


def only(*names: str) -> Bend:
    """Such bodies have these members and no others."""
    return lambda body: {name: value for name, value in body.items() if name in names}


def instead(value: Any) -> Bend:
    """Something else is said altogether."""
    return lambda body: value


def where(bend: Bend, **members: Any) -> Bend:
    """Only bodies with these members are bent."""
    return lambda body: bend(body) if all(body.get(name) == value for name, value in members.items()) else body


def changing(name: str, change: Callable[[Any], Any]) -> Bend:
    """One member is changed."""
    return lambda body: {**body, name: change(body[name])}


def all_of(bend: Bend) -> Bend:
    """Each item of a list is bent."""
    return lambda items: [bend(item) for item in items]
