"""The script of the ZenFlux reference agent: the directives in a message become moves, without a clock or a network."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conformance.faults.script import Break, Speak, words

Body = dict[str, Any]
NAMES = "think tool permit ask continue rollback annotate fail slow burst title compact image"
DIRECTIVE = re.compile(rf"/({NAMES.replace(' ', '|')})\b[ ]?(\w*)")
WITH_WORD = ("tool", "slow", "burst", "title")
BILLING = {
    "prompt_tokens": 100,
    "completion_tokens": 200,
    "thinking_tokens": 50,
    "cache_read_tokens": 30,
    "cache_write_tokens": 10,
    "total_tokens": 390,
    "latency": 1.5,
    "llm_calls": 3,
    "model": "reference",
}
NOTES: tuple[tuple[str, Any], ...] = (
    ("preface", "Let me see."),
    ("intent", {"name": "examine", "confidence": 0.9}),
    ("search", "Found: three things."),
    ("knowledge", "Known: two things."),
    ("recommended", {"questions": ["What else?", "And why?"]}),
    ("billing", BILLING),
)
PIXEL = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}


@dataclass(frozen=True)
class Use:
    """Call a tool, perhaps with permission."""

    name: str
    given: Body
    needs_permission: bool = False


@dataclass(frozen=True)
class Ask:
    """Ask the user something."""


@dataclass(frozen=True)
class LongRun:
    """Ask whether to go on."""


@dataclass(frozen=True)
class Rollback:
    """Offer to roll back."""


@dataclass(frozen=True)
class Note:
    """Annotate the message."""

    topic: str
    content: Any


@dataclass(frozen=True)
class Change:
    """Change the conversation."""

    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Show:
    """Show an image."""


Move = Speak | Break | Use | Ask | LongRun | Rollback | Note | Change | Show


def moves(text: str) -> list[Move]:
    """What the agent does with this message."""
    found: list[Move] = []
    rest = text
    while directive := DIRECTIVE.search(rest):
        word = directive[2] if directive[1] in WITH_WORD else ""
        found += _moves(directive[1], word)
        end = directive.end() if word else directive.start() + len(directive[1]) + 1
        rest = rest[: directive.start()] + rest[end:]
    return [*found, Speak("text", words(f"You said: {rest}"))]


def _moves(directive: str, word: str) -> Iterator[Move]:
    match directive:
        case "think":
            yield Speak("thinking", words("Let me think about that."))
        case "tool":
            yield Speak("text", words("I will use a tool. "))
            yield Use(word or "clock", {"zone": "UTC", "exact": True})
        case "permit":
            yield Use("file_write", {"path": "config.json"}, needs_permission=True)
        case "ask":
            yield Ask()
        case "continue":
            yield LongRun()
        case "rollback":
            yield Rollback()
        case "annotate":
            yield from (Note(topic, content) for topic, content in NOTES)
        case "fail":
            yield Speak("text", ("This will ", "not be "))
            yield Break()
        case "slow":
            yield Speak("text", tuple(f"tick {place} " for place in range(int(word or 1))), pause=0.05)
        case "burst":
            yield Speak("text", tuple(f"tick {place} " for place in range(int(word or 1))))
        case "title":
            yield Change((("title", word),))
        case "compact":
            yield Change((("compressed", {"summary": "Much was said.", "trimmed_count": 5}),))
            yield Change((("metadata", {"tags": ["short"]}),))
        case "image":
            yield Show()
