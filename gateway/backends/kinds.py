"""The kinds of backends that config.yaml can name: built-in ones by a word, a user's class as `module:Class`."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import BaseModel

import gateway.model as m
from gateway.client import AddressPolicy
from gateway.errors import Invalid, NotFound, translate_exceptions
from gateway.ports import Addresses, Backend, ConfinableBackend
from gateway.yaml_positions import Problems

from .demo import DEMO_CARD, DemoBackend, DemoSettings
from .user_modules import UserModule, load_user_module


@dataclass(frozen=True)
class BackendContext:
    """What an agent is made with beside its settings.

    Paths in settings are relative to `folder`. `addresses` are those that clients may name; if `trust_uploads` is set,
    files of clients may configure the agent.
    """

    folder: Path
    addresses: Addresses = field(default_factory=AddressPolicy)
    trust_uploads: bool = False


@dataclass(frozen=True)
class MadeBackend:
    """An agent; its card if that is not the card of its kind; its user module, which is watched for changes."""

    backend: Backend
    card: m.AgentCard | None = None
    module: UserModule | None = None


BackendFactory = Callable[[Mapping[str, object], BackendContext], MadeBackend]
"""(the settings of the agent, what it is made with beside them) → the agent."""


@dataclass(frozen=True)
class FeatureSupport:
    """How well agents of a kind get something of a session, and in which form."""

    level: m.SupportLevel
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class BackendKind:
    """One kind of agent; `settings` is the model of its settings, if they are known beforehand.

    `support` says of each of `SESSION_FEATURES` how well the agent gets it. It is None if only the agent itself knows,
    or if the dialect of the agent decides, whose table says it then.
    """

    make: BackendFactory
    card: m.AgentCard
    settings: type[BaseModel] | None = None
    support: Mapping[str, FeatureSupport] | None = None


def is_class_reference(word: str) -> bool:
    """Whether the word names a class, not a built-in kind."""
    module, colon, name = word.partition(":")
    return bool(colon) and all(part.isidentifier() for part in (*module.split("."), name))


def user_class_kind(word: str, base: Path) -> BackendKind:
    """The kind of a user's class; its attribute `card`, if there is one, is what clients see."""
    module_name, _, name = word.partition(":")
    with translate_exceptions({NotFound: Invalid, Problems: Invalid}):
        module = load_user_module(module_name, base)
    made = getattr(module.module, name, None)
    if not callable(made):
        raise Invalid(f"module '{module_name}' has no class '{name}'")

    def make(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
        with translate_exceptions({TypeError: Invalid}):
            backend = made(**settings)
        if not callable(getattr(backend, "run", None)) or not callable(getattr(backend, "close", None)):
            raise Invalid(f"'{word}' is not a backend: it needs an async generator 'run(turn)' and a coroutine close()")
        if isinstance(backend, ConfinableBackend):
            backend.confine(context.addresses, trust_uploads=context.trust_uploads)
        return MadeBackend(backend, getattr(backend, "card", None), module)

    return BackendKind(make=make, card=getattr(made, "card", None) or m.AgentCard(name=name.lower()))


def _demo(settings: Mapping[str, object], context: BackendContext) -> MadeBackend:
    return MadeBackend(DemoBackend(delay=DemoSettings.model_validate(settings).delay))


NOTHING = dict.fromkeys(m.SESSION_FEATURES, FeatureSupport(m.SupportLevel.DROPPED))
KINDS: dict[str, BackendKind] = {
    "demo": BackendKind(
        make=_demo, card=DEMO_CARD, settings=DemoSettings,
        support={**NOTHING, "user_settings": FeatureSupport(m.SupportLevel.FULL)},
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
