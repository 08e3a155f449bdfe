"""Servers with many variations at once: what no case may hold against one of them, it may not hold against all."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

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
    if not hasattr(kinds[0].reference(), "parts"):
        return _inherited(kinds)
    alterations = [alteration for kind in reversed(kinds) for alteration in kind.alterations]
    return Variant("".join(kind.name for kind in kinds), kinds[0].reference, tuple(alterations))


def _inherited(variants: Sequence[Variant]) -> Variant:
    rows = [alteration for kind in variants for alteration in kind.alterations]
    kinds = list(dict.fromkeys(kind.reference for kind in variants))
    return Variant("x", type("".join(kind.__name__ for kind in kinds), tuple(kinds), _parts(kinds)), tuple(rows))


def _parts(kinds: Sequence[Any]) -> dict[str, Any]:
    """What cannot be inherited from several at once: the changes of bodies, the edits of events, and who performs."""
    parts: dict[str, Any] = {}
    players = [kind.player_type for kind in kinds if "player_type" in vars(kind)]
    if players:
        parts["player_type"] = type("Player", tuple(players), {})
    if any("body_changes" in vars(kind) for kind in kinds):
        parts["body_changes"] = reduce(_changed_by_both, [kind.body_changes for kind in kinds])
    if editors := [kind.edited for kind in kinds if "edited" in vars(kind)]:
        parts["edited"] = _edited_by_all(editors)
    return parts


def _edited_by_all(editors: Sequence[Any]) -> Any:
    def edited(self: Any, told: Any) -> list[Any]:
        return reduce(lambda events, editor: [it for event in events for it in editor(self, event)], editors, [told])

    return edited


def _changed_by_both(first: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: (lambda body, a=first[name], b=then[name]: b(a(body))) for name in first.keys() & then.keys()}
    return {**first, **then, **both}
