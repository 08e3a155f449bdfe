"""Cases: examinations written as code, each with the requirements that it decides."""

import sys
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from conformance.kit.requirement import Catalogue

Check = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """One examination of a server; it passes unless its function raises."""

    name: str
    requirements: tuple[str, ...]
    sentence: str
    check: Check
    destructive: str | None = None
    """What it may do to things the suite has not made; such a case is put only where that is allowed."""
    formerly: str | None = None
    """The requirement that older sets have for what it decides now."""

    def within(self, wanted: Collection[str], former: Collection[str]) -> "Case | None":
        """The case for these requirements, the former ones with the sentences they had; None if it decides none."""
        if not set(self.requirements).isdisjoint(wanted):
            return self
        return replace(self, requirements=(self.formerly,)) if self.formerly in former and self.formerly else None


def requirement(
    *ids: str, destructive: str | None = None, formerly: str | None = None
) -> Callable[[Check], Case]:
    """Make a case of an async function: it decides the requirements of these ids, or what they were part of before.

    The name of a case begins with the `SECTION` of its module, or with the name of the module.
    """
    if not ids:
        raise ValueError("a case must name at least one requirement")

    def bind(check: Check) -> Case:
        sentence = " ".join((check.__doc__ or "").split())
        section = getattr(sys.modules[check.__module__], "SECTION", check.__module__.rpartition(".")[2])
        return Case(f"{section}.{check.__name__}", ids, sentence, check, destructive, formerly)

    return bind


def collect(modules: Iterable[ModuleType]) -> tuple[Case, ...]:
    """The cases of these modules, in the order they are written."""
    return tuple(case for module in modules for item in vars(module).values() for case in _cases(item))


def _cases(item: object) -> tuple[Case, ...]:
    """A case, or a tuple of cases made from a table."""
    listed = item if isinstance(item, tuple) else (item,)
    return tuple(case for case in listed if isinstance(case, Case))


def disagreements(catalogue: Catalogue, cases: Iterable[Case]) -> list[str]:
    """Where catalogue and cases do not match, in both directions; empty if they match."""
    cases = list(cases)
    bound = {name for case in cases for name in case.requirements}
    names = [case.name for case in cases]
    exempt = {item.id for item in catalogue.requirements if item.not_applicable}
    return [
        *(f"{name}: no case decides it" for name in sorted(catalogue.ids - bound - exempt)),
        *(f"{name}: a case names it, the catalogue does not" for name in sorted(bound - catalogue.ids)),
        *(f"{name}: a case names it, though it does not apply" for name in sorted(bound & exempt)),
        *(f"{name}: two cases have this name" for name in sorted({name for name in names if names.count(name) > 1})),
        *(f"{case.name}: has no sentence" for case in cases if not case.sentence),
    ]
