"""The kinds of backends that config.yaml can name: built-in ones by a word, a user's class as `module:Class`."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import gateway.model as m
from gateway.backends.demo import DEMO_CARD, DemoSettings
from gateway.errors import Invalid, NotFound, translate_exceptions
from gateway.ports import Backend
from gateway.yaml_positions import Problems

from .demo import _demo
from .scripted import ScriptedSettings, _scripted
from .user_modules import load_user_module

BackendFactory = Callable[[Mapping[str, Any], Path], Backend]
"""(the agent's settings, the folder that its paths are relative to) → the agent."""


@dataclass(frozen=True, kw_only=True)
class BackendKind:
    """One kind of agent; `settings` is the model of its settings, if they are known beforehand."""

    make: BackendFactory
    card: m.AgentCard
    settings: type[BaseModel] | None = None


def is_class_reference(word: str) -> bool:
    """Whether the word names a class, not a built-in kind."""
    module, colon, name = word.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), name))


def user_class_kind(word: str, base: Path) -> BackendKind:
    """The kind of a user's class; its attribute `card`, if there is one, is what clients see."""
    module_name, _, name = word.partition(":")
    with translate_exceptions({NotFound: Invalid, Problems: Invalid}):
        made = getattr(load_user_module(module_name, base).module, name, None)
    if not callable(made):
        raise Invalid(f"module '{module_name}' has no class '{name}'")

    def make(settings: Mapping[str, Any], folder: Path) -> Backend:
        with translate_exceptions({TypeError: Invalid}):
            backend = made(**settings)
        if not callable(getattr(backend, "run", None)) or not callable(getattr(backend, "close", None)):
            raise Invalid(f"'{word}' is no backend: it needs an async generator 'run(turn)' and a coroutine 'close()'")
        return backend  # type: ignore[no-any-return]  # it has what a backend must have

    return BackendKind(make=make, card=getattr(made, "card", None) or m.AgentCard(name=name.lower()))


KINDS: dict[str, BackendKind] = {
    "demo": BackendKind(make=_demo, card=DEMO_CARD, settings=DemoSettings),
    "scripted": BackendKind(
        make=_scripted, card=m.AgentCard(name="scripted", title="Scripted agent"), settings=ScriptedSettings,
    ),
}
"""The kinds that are imported at start, by their word in config.yaml."""


@cache
def _packages() -> dict[str, str]:
    """The packages below this one that have a `KIND`, by their name; none of them is imported."""
    root = Path(__file__).parent
    found = (door.parent for door in root.rglob("__init__.py") if "\nKIND = " in door.read_text(encoding="utf-8"))
    return {folder.name: ".".join((__package__, *folder.relative_to(root).parts)) for folder in found}


def known_kinds() -> list[str]:
    """The names of all built-in kinds."""
    return sorted((*KINDS, *_packages()))


def kind_of(word: str, base: Path) -> BackendKind:
    """The kind for a word of config.yaml: a built-in one, or a user's class as `module:Class`."""
    if is_class_reference(word):
        return user_class_kind(word, base)
    if word not in known_kinds():
        raise NotFound(f"there is no backend '{word}'")
    if word in KINDS:
        return KINDS[word]
    kind: BackendKind = importlib.import_module(_packages()[word]).KIND
    return kind
