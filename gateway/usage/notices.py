"""Which clients would notice a difference between an agent and its shadow: those that were seen to use what differs."""

import json
from collections.abc import Iterable, Sequence

from msgspec import Struct

from .report import ClientUsage

_BEGINNINGS = {
    "call ": "tool_calls", "torn call": "tool_calls", "result of ": "tool_results", "asked: permission": "permissions",
    "asked: question": "questions", "asked: client_tool": "client_tools", "asked: continuation": "continuations",
    "asked: rollback": "rollbacks", "sub-agent": "subagents", "compacted": "compaction", "data: ": "data_blocks",
    "image": "images_out", "text": "text", "thinking": "thinking", "ended: ": "stop_reasons", "failed: ": "faults",
}
"""How the facts of a turn begin, and the feature that each is an instance of."""
SUB_AGENT = "sub-agent: "


class NoticedDifference(Struct, frozen=True, kw_only=True):
    """A difference of the shadow report, how many turns had it, and the clients that use one of its features."""

    agent: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    turns: int
    features: tuple[str, ...]
    clients: tuple[ClientUsage, ...]


def feature_of_fact(fact: str) -> str | None:
    """The feature of a fact; what a sub-agent did is noticed by those that watch sub-agents."""
    if fact.startswith(SUB_AGENT):
        return "subagents"
    return next((feature for beginning, feature in _BEGINNINGS.items() if fact.startswith(beginning)), None)


def noticed_differences(lines: Iterable[bytes], clients: Sequence[ClientUsage]) -> list[NoticedDifference]:
    """Equal differences of all turns together, those of most turns first; a line that is no report is passed over."""
    counted: dict[tuple[str, tuple[str, ...], tuple[str, ...]], int] = {}
    for line in lines:
        try:
            turn = json.loads(line)
            for one in turn.get("differences", ()):
                key = str(turn["agent"]), tuple(map(str, one["first"])), tuple(map(str, one["second"]))
                counted[key] = counted.get(key, 0) + 1
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    found = []
    for (agent, first, second), turns in sorted(counted.items(), key=lambda row: -row[1]):
        features = tuple(dict.fromkeys(one for fact in (*first, *second) if (one := feature_of_fact(fact))))
        noticing = tuple(one for one in clients if any(feature in one.features for feature in features))
        found.append(NoticedDifference(
            agent=agent, first=first, second=second, turns=turns, features=features, clients=noticing))
    return found
