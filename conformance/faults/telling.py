"""What happens in a turn, and how each mode tells it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Piece:
    """A piece of text or thinking."""

    kind: str
    text: str


@dataclass(frozen=True)
class Part:
    """A text or a thought is complete."""

    kind: str
    text: str


@dataclass(frozen=True)
class Called:
    """A tool was called."""

    call: dict[str, Any]


@dataclass(frozen=True)
class Returned:
    """A server tool has a result."""

    result: dict[str, Any]


@dataclass(frozen=True)
class Entered:
    """An assistant or tool message entered the history."""

    message: dict[str, Any]


@dataclass(frozen=True)
class Stopped:
    """The turn is over."""

    reason: str


Happening = Piece | Part | Called | Returned | Entered | Stopped
Event = tuple[str, dict[str, Any]]


def _common(happening: Happening) -> Event | None:
    match happening:
        case Called(call):
            return "tool_call", call
        case Returned(result):
            return "tool_result", result
        case Stopped(reason):
            return "turn_stop", {"stopReason": reason}
        case _:
            return None


async def in_deltas(happenings: AsyncIterator[Happening]) -> AsyncIterator[Event]:
    """The mode delta: pieces as they come."""
    async for happening in happenings:
        if isinstance(happening, Piece):
            yield f"{happening.kind}_delta", {"delta": happening.text}
        elif event := _common(happening):
            yield event


async def in_messages(happenings: AsyncIterator[Happening]) -> AsyncIterator[Event]:
    """The mode message: whole parts."""
    async for happening in happenings:
        if isinstance(happening, Part):
            yield happening.kind, {happening.kind: happening.text}
        elif event := _common(happening):
            yield event


async def in_one_body(happenings: AsyncIterator[Happening]) -> dict[str, Any]:
    """The mode none: everything at the end."""
    body: dict[str, Any] = {"stopReason": "error", "messages": []}
    async for happening in happenings:
        if isinstance(happening, Entered):
            body["messages"].append(happening.message)
        elif isinstance(happening, Stopped):
            body["stopReason"] = happening.reason
    return body
