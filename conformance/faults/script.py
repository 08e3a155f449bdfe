"""The agent of the reference servers: the directives in a message become moves, without a clock or a network."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

SERVER_TOOLS = ("clock", "calc", "search")
NAMES = "think tool client-tool permit parallel fork-ask fork fail-start fail refuse max-tokens slow burst image"
DIRECTIVE = re.compile(rf"/({NAMES.replace(' ', '|')})\b")
ARGUMENT = re.compile(r"\s+(\w+)(?:\s+(\{.*?\}))?")


@dataclass(frozen=True)
class Speak:
    """Say or think something, piece by piece."""

    kind: str
    pieces: tuple[str, ...]
    pause: float = 0.0


@dataclass(frozen=True)
class Call:
    """Call tools, all at once; `None` stands for the first tool of the client."""

    tools: tuple[tuple[str | None, dict[str, Any]], ...]


@dataclass(frozen=True)
class Show:
    """Show an image."""

    url: str


@dataclass(frozen=True)
class Break:
    """Fail, in the middle of whatever is being said."""


@dataclass(frozen=True)
class Stop:
    """End the turn for this reason."""

    reason: str


@dataclass(frozen=True)
class Fork:
    """Hand something to another agent, which may have to ask before it answers."""

    asking: bool


Move = Speak | Call | Show | Break | Stop | Fork


@dataclass
class Script:
    """The moves still to be made."""

    moves: list[Move] = field(default_factory=list)


def words(text: str) -> tuple[str, ...]:
    """The text cut after every word."""
    return tuple(re.findall(r"\S*\s*", text))[:-1] or (text,)


def script(text: str) -> Script:
    """What the agent does with this message."""
    moves, rest = [], text
    while found := DIRECTIVE.search(rest):
        after = rest[found.end() :]
        argument = ARGUMENT.match(after) if found[1] in ("tool", "slow", "burst") else None
        moves += list(_moves(found[1], argument))
        rest = rest[: found.start()] + after[argument.end() if argument else 0 :]
    return Script([*moves, Speak("text", words(f"You said: {rest}")), Stop("end_turn")])


def _moves(directive: str, argument: re.Match[str] | None) -> Iterator[Move]:
    word = argument[1] if argument else ""
    match directive:
        case "think":
            yield Speak("thinking", words("Let me think about that."))
        case "tool":
            given = orjson.loads(argument[2]) if argument and argument[2] else {}
            yield Call(((word or "clock", given),))
        case "client-tool":
            yield Call(((None, {"word": "dragoman"}),))
        case "permit":
            yield Call((("search", {"query": "dragoman"}),))
        case "parallel":
            yield Call((("clock", {}), ("calc", {"expression": "1 + 1"}), (None, {"word": "parallel"})))
        case "slow":
            yield Speak("text", tuple(f"tick {place} " for place in range(int(word or 1))), pause=0.05)
        case "burst":
            yield Speak("text", tuple(f"tick {place} " for place in range(int(word or 1))))
        case "image":
            yield Show("https://example.com/picture.png")
        case "fork" | "fork-ask":
            yield Fork(asking=directive == "fork-ask")
        case "fail":
            yield Speak("text", ("This will ", "not be "))
            yield Break()
        case "fail-start":
            yield Break()
        case "refuse":
            yield Stop("refusal")
        case "max-tokens":
            yield Speak("text", ("There is much more to ",))
            yield Stop("max_tokens")
