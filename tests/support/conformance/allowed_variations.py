"""Servers with many variations at once: what no case may hold against one of them, it may not hold against all."""

from collections.abc import Sequence

from conformance.faults.kill.setups import setup_of
from conformance.faults.steps import Variant
from conformance.kit.requirement import Level
from conformance.kit.suite import load_suite
from tests.support.conformance.examination_facts import EXAMINED, examination_facts

ALONE: dict[str, Sequence[Variant]] = {name: setup_of(name).variations for name in EXAMINED}
GROUPS = [(name, group) for name in EXAMINED for group in examination_facts(name).variations]
"""Variations that are put together in one server, by dialect."""


def binding(dialect: str) -> list[str]:
    """The requirements that variations are held to."""
    listed, keeps = load_suite(dialect).catalogue.requirements, examination_facts(dialect).variations_keep_shoulds
    return [item.id for item in listed if item.level is Level.MUST or keeps]


def together(dialect: str, group: str) -> Variant:
    """One server that has all the variations of a group."""
    by_name = {variant.name: variant for variant in ALONE[dialect]}
    return combined([by_name[name] for name in examination_facts(dialect).variations[group].split()])


def combined(kinds: Sequence[Variant]) -> Variant:
    """One server that does what all of these do; what the first of them does is done around the others."""
    alterations = [alteration for kind in reversed(kinds) for alteration in kind.alterations]
    return Variant("".join(kind.name for kind in kinds), kinds[0].reference, tuple(alterations))
