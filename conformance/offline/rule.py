"""Rules: judgements of recordings, each with the requirements that it decides."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from conformance.kit.requirement import Catalogue
from conformance.offline.recording import Exchange, Recording

Check = Callable[[Any], Iterator[Exchange | str]]


@dataclass(frozen=True)
class Rule:
    """One judgement of a recording.

    The check yields each thing it is about to judge, an exchange or its place, and raises Failed if it finds it wrong.
    """

    name: str
    requirements: tuple[str, ...]
    sentence: str
    needs: str
    check: Check


def rule(*ids: str, needs: str) -> Callable[[Check], Rule]:
    """Make a rule of a generator function; `needs` says what a recording must contain to be judged by it."""

    def bind(check: Check) -> Rule:
        section = check.__module__.rpartition(".")[2]
        return Rule(f"{section}.{check.__name__}", ids, " ".join((check.__doc__ or "").split()), needs, check)

    return bind


def collect(modules: Iterable[ModuleType]) -> tuple[Rule, ...]:
    """The rules of these modules, in the order they are written."""
    items = (item for module in modules for item in vars(module).values())
    listed = (item if isinstance(item, tuple) else (item,) for item in items)
    return tuple(found for group in listed for found in group if isinstance(found, Rule))


@dataclass(frozen=True)
class Offline:
    """Everything needed to judge recordings of one dialect.

    `view` reads a recording as traffic of the dialect; `acting` says, for the requirements no rule decides, why only
    a live examination can; `mount` is a pattern whose first group is what comes before the dialect's own paths.
    """

    view: Callable[[Recording], Any]
    rules: tuple[Rule, ...]
    acting: Mapping[str, str]
    mount: str

    @property
    def decided(self) -> frozenset[str]:
        return frozenset(name for item in self.rules for name in item.requirements)


def disagreements(catalogue: Catalogue, offline: Offline) -> list[str]:
    """Where catalogue and rules do not match, in both directions; empty if they match."""
    exempt = {item.id for item in catalogue.requirements if item.not_applicable}
    decided, acting = offline.decided, set(offline.acting)
    names = [item.name for item in offline.rules]
    return [
        *(f"{name}: neither a rule nor a reason" for name in sorted(catalogue.ids - exempt - decided - acting)),
        *(f"{name}: the catalogue does not have it" for name in sorted((decided | acting) - catalogue.ids)),
        *(f"{name}: has a rule, and a reason for having none" for name in sorted(decided & acting)),
        *(f"{name}: two rules have this name" for name in sorted({it for it in names if names.count(it) > 1})),
        *(f"{item.name}: has no sentence" for item in offline.rules if not item.sentence),
    ]
