"""Servers with many variations at once: what no case may hold against one of them, it may not hold against all."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from conformance.faults.kill.setups import setup_of
from conformance.kit.requirement import Level
from conformance.kit.suite import load_suite
from tests.support.conformance.examination_facts import EXAMINED, examination_facts

ALONE: dict[str, Sequence[Any]] = {name: setup_of(name).variations for name in EXAMINED}
GROUPS = [(name, group) for name in EXAMINED for group in examination_facts(name).variations]
"""Variations that are put together in one server, by dialect."""


def binding(dialect: str) -> list[str]:
    """The requirements that variations are held to."""
    listed, keeps = load_suite(dialect).catalogue.requirements, examination_facts(dialect).variations_keep_shoulds
    return [item.id for item in listed if item.level is Level.MUST or keeps]


def together(dialect: str, group: str) -> type[Any]:
    """One server that has all the variations of a group."""
    by_name = {kind.__name__: kind for kind in ALONE[dialect]}
    return combined([by_name[name] for name in examination_facts(dialect).variations[group].split()])


def combined(kinds: Sequence[type[Any]]) -> type[Any]:
    """One server that does what all of these do."""
    return type("".join(kind.__name__ for kind in kinds), tuple(kinds), _parts(kinds))


def _parts(kinds: Sequence[type[Any]]) -> dict[str, Any]:
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
