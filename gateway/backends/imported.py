"""Agents of one's own: `backend: my_module:MyAgent` names a class, found beside config.yaml or among the installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway.errors import Invalid, NotFound, naming
from gateway.marks import Problems
from gateway.model import AgentCard
from gateway.ports import Backend

from .kind import Kind
from .sources import read_module


def is_import(word: str) -> bool:
    """Whether the word names a class, not a kind of ours."""
    module, colon, name = word.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), name))


def imported(word: str, base: Path) -> Kind:
    """The kind of agent that the class makes; its attribute `card`, if it has one, is what clients are told."""
    module_name, _, name = word.partition(":")
    with naming({NotFound: Invalid, Problems: Invalid}):
        made = getattr(read_module(module_name, base).module, name, None)
    if not callable(made):
        raise Invalid(f"module '{module_name}' has no class '{name}'")

    def make(settings: Mapping[str, Any], folder: Path) -> Backend:
        with naming({TypeError: Invalid}):
            backend = made(**settings)
        if not callable(getattr(backend, "run", None)) or not callable(getattr(backend, "close", None)):
            raise Invalid(f"'{word}' is no backend: it needs an async generator 'run(turn)' and a coroutine 'close()'")
        return backend  # type: ignore[no-any-return]  # it has what a backend must have

    return Kind(make=make, card=getattr(made, "card", None) or AgentCard(name=name.lower()))
