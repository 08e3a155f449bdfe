"""The script of the Blade reference agent: the directives in a message become moves, without a clock or a network."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from conformance.faults.script import Break, Speak, words

NAMES = "think tool fork-ask fork fail slow burst bridge ui plan compact annotate ask json"
DIRECTIVE = re.compile(rf"/({NAMES.replace(' ', '|')})\b(?:\s+(\w+))?(?:\s+(\{{.*?\}}))?")
TAKES_WORD = ("tool", "slow", "burst")
CARD = {"resourceHTML": "<!doctype html><p>A card</p>", "target": "inline", "height": 320, "title": "A card"}
BRIDGE = {"action": "map.highlight", "payload": {"cityIds": ["hangzhou", "ningbo"]}}
QUESTIONS = [
    {
        "question": "Where to?",
        "header": "Deployment",
        "options": [{"label": "staging", "description": "to try"}, {"label": "production"}],
        "multiSelect": False,
    },
    {"question": "With what?", "options": [{"label": "logs"}, {"label": "metrics"}], "multiSelect": True},
]


@dataclass(frozen=True)
class Use:
    """Use a tool of the server."""

    name: str
    given: dict[str, Any] = field(default_factory=dict)
    result: Any = "12:00"


@dataclass(frozen=True)
class Ask:
    """Ask the user."""


@dataclass(frozen=True)
class Send:
    """Send a sub-agent, which may have to ask."""

    asking: bool


@dataclass(frozen=True)
class Show:
    """Add a block that is neither text nor thinking."""

    kind: str
    content: Any = None


@dataclass(frozen=True)
class Compact:
    """Summarise what was said."""


@dataclass(frozen=True)
class Recall:
    """Refer to a memory."""


Move = Speak | Use | Ask | Send | Show | Compact | Recall | Break


def script(text: str) -> list[Move]:
    """What the agent does with this message."""
    moves = [move for found in DIRECTIVE.finditer(text) for move in _moves(found[1], found[2] or "", found[3])]
    rest = DIRECTIVE.sub(_left, text)
    return [*moves, Speak("text", words(f"You said: {rest.strip()}"))]


def _left(found: re.Match[str]) -> str:
    """What remains of a directive in the text: the words it did not take."""
    return "" if found[1] in TAKES_WORD else " ".join(part for part in found.groups()[1:] if part)


def _moves(directive: str, word: str, given: str | None) -> Iterator[Move]:
    match directive:
        case "think":
            yield Speak("thinking", words("Let me think about that."))
        case "tool":
            yield Speak("text", words("Let me look. "))
            yield Use(word or "clock", orjson.loads(given) if given else {})
        case "bridge":
            yield Use("highlight", {}, {"ok": True, "_meta": {"bridge": BRIDGE}})
        case "ui":
            yield Use("card", {}, {"_meta": {"ui": CARD}})
        case "ask":
            yield Ask()
        case "fork" | "fork-ask":
            yield Send(asking=directive == "fork-ask")
        case "slow" | "burst":
            pieces = tuple(f"tick {place} " for place in range(int(word or 1)))
            yield Speak("text", pieces, pause=0.03 if directive == "slow" else 0.0)
        case "plan":
            for kind, content in (("planning_enter", None), ("mode_change", {"from": "executing", "to": "planning"})):
                yield Show(kind, content)
            yield Show("plan_status", {"steps": ["look", "do"], "done": 0})
            yield Show("planning_exit")
        case "annotate":
            yield Recall()
            yield Show("system_notification", "A memory was used.")
        case "compact":
            yield Compact()
        case "fail":
            yield Speak("text", ("This will ", "not be "))
            yield Break()
