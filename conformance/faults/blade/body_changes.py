"""Functions that change a body before the server sends it; variations of the server are written with them."""

from collections.abc import Callable, Mapping
from typing import Any

from conformance.faults.blade.state import BodyChange
from conformance.faults.steps import Step


def by_kind(body_changes: Mapping[str, BodyChange]) -> Callable[[Any, Step[Any], str, Any], Any]:
    """A step in the place of the writer's `shown`: bodies of these kinds are changed."""

    def shown(self: Any, step: Step[Any], kind: str, body: Any) -> Any:
        return step(kind, body_changes[kind](body) if kind in body_changes else body)

    return shown


def setting(**members: Any) -> BodyChange:
    """Every such body has these members instead of its own."""
    return lambda body: {**body, **members}


def without(*names: str) -> BodyChange:
    """No such body has these members."""
    return lambda body: {name: value for name, value in body.items() if name not in names}


def only(*names: str) -> BodyChange:
    """Such bodies have these members and no others."""
    return lambda body: {name: value for name, value in body.items() if name in names}


def instead(value: Any) -> BodyChange:
    """Another value is sent instead of the body."""
    return lambda body: value


def where(change: BodyChange, **members: Any) -> BodyChange:
    """Only bodies with these members are changed."""
    return lambda body: change(body) if all(body.get(name) == value for name, value in members.items()) else body


def changing(name: str, change: Callable[[Any], Any]) -> BodyChange:
    """One member is changed."""
    return lambda body: {**body, name: change(body[name])}


def all_of(change: BodyChange) -> BodyChange:
    """Each item of a list is changed."""
    return lambda items: [change(item) for item in items]
