"""The features that a dialect can carry or lose, the events that are instances of them, and what a pair loses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gateway.model as m

if TYPE_CHECKING:
    from .table import Table

LOST_LEVELS = frozenset((m.SupportLevel.DROPPED, m.SupportLevel.REJECTED))
LEVEL_SYMBOLS = {
    m.SupportLevel.FULL: "✓",
    m.SupportLevel.PARTIAL: "~",
    m.SupportLevel.FALLBACK: "~",
    m.SupportLevel.DROPPED: "✗",
    m.SupportLevel.REJECTED: "✗",
}
LEVEL_MEANINGS = {m.SupportLevel.PARTIAL: "some of it arrives", m.SupportLevel.FALLBACK: "it arrives as something else"}
"""The note of a degraded feature whose table has no note."""


@dataclass(frozen=True)
class Feature:
    """A feature of agent conversations; each event of `carriers` is one instance of it."""

    meaning: str
    carriers: tuple[str, ...] = ()


FEATURES: dict[str, Feature] = {
    "text": Feature("words of the agent, as they come", ("block.ended.text",)),
    "thinking": Feature("the agent's reasoning", ("block.ended.thinking",)),
    "tool_calls": Feature("which tool is called, with what input", ("block.ended.tool_use",)),
    "tool_results": Feature("what the server's own tools gave back",
                            ("tool.returned.builtin", "tool.returned.mcp", "tool.returned.provider")),
    "tool_output": Feature("what a tool prints while it runs", ("tool.output",)),
    "parallel_tools": Feature("several calls open at once, distinguished by their ids"),
    "client_tools": Feature("tools that the client carries out", ("input.requested.client_tool",)),
    "permissions": Feature("the agent asks before it uses a tool", ("input.requested.permission",)),
    "questions": Feature("the agent asks a person, with choices", ("input.requested.question",)),
    "continuations": Feature("long work asks whether to go on", ("input.requested.continuation",)),
    "rollbacks": Feature("failed work asks where to go back to", ("input.requested.rollback",)),
    "subagents": Feature("the messages of sub-agents, apart from the agent's", ("scope.opened", "scope.message")),
    "images_in": Feature("pictures from a person"),
    "images_out": Feature("pictures from the agent", ("block.ended.image",)),
    "files": Feature("files from a person"),
    "data_blocks": Feature("typed pieces: cards, plans, changes of mode", ("block.ended.data",)),
    "annotations": Feature("what is known about a message beside its words", ("message.annotated",)),
    "notices": Feature("notices that belong to no message", ("notice.posted",)),
    "compaction": Feature("the history was compacted", ("session.compacted",)),
    "titles": Feature("the session has a new title"),
    "history_seed": Feature("a session starts with messages of an earlier conversation"),
    "usage": Feature("tokens spent"),
    "stop_reasons": Feature("why a turn ended", ("turn.ended",)),
    "faults": Feature("what went wrong, with code and words", ("fault.raised",)),
    "interrupts": Feature("a person stops a turn", ("input.accepted.interrupt",)),
    "structured_output": Feature("an answer that fits a schema"),
    **{feature: Feature(meaning) for feature, meaning in m.SESSION_FEATURES.items()},
    "custom": Feature("events and commands of one dialect that the gateway passes on unread",
                      ("custom", "input.accepted.custom")),
}


def feature_of(event: m.Event) -> str | None:
    """The feature that this event is an instance of, so that its loss can be counted; most events are none."""
    by_variant = _FEATURES_BY_EVENT.get(type(event))
    if by_variant is None:
        return None
    found = by_variant.get(event.variant)
    return found(event) if callable(found) else found


def _of_message(event: m.InputAccepted) -> str | None:
    assert isinstance(event.command, m.SendMessage)
    if event.command.output_schema is not None:
        return "structured_output"
    return _of_content(event.command.content)


def _of_content(content: m.Content) -> str | None:
    kinds = {type(part) for part in content} if not isinstance(content, str) else set()
    return "files" if m.FilePart in kinds else "images_in" if m.ImagePart in kinds else None


def _of_end(event: m.MessageEnded) -> str | None:
    return "usage" if event.usage != m.Usage() else None


def _of_update(event: m.SessionUpdated) -> str | None:
    return "titles" if event.title is not None else None


def _of_creation(event: m.SessionCreated) -> str | None:
    return "history_seed" if event.history else None


FeatureRule = str | Callable[[Any], str | None] | None


def _index_features() -> dict[type[m.Event], dict[str, FeatureRule]]:
    by_cue: dict[str, FeatureRule] = {cue: name for name, feature in FEATURES.items() for cue in feature.carriers}
    by_cue |= {
        "input.accepted.send_message": _of_message,
        "message.ended": _of_end,
        "session.updated": _of_update,
        "session.created": _of_creation,
    }
    found = {
        event: {variant: by_cue.get(f"{event.name}.{variant}", by_cue.get(event.name))
                for variant in event.variants or ("",)}
        for event in m.EVENTS
    }
    return {event: variants for event, variants in found.items() if any(variants.values())}


_FEATURES_BY_EVENT = _index_features()
FEATURE_EVENTS: frozenset[type[m.Event]] = frozenset(_FEATURES_BY_EVENT)
"""The events that may be instances of a feature."""


def losses_between(first: "Table", second: "Table") -> tuple[list[str], list[str]]:
    """Return the features that clients of the second dialect lose, and those they get in a degraded form."""
    levels = {name: {first.client_support[name], second.support[name]} for name in FEATURES}
    lost = [name for name, both in levels.items() if LOST_LEVELS & both]
    return lost, [name for name, both in levels.items() if name not in lost and both != {m.SupportLevel.FULL}]
