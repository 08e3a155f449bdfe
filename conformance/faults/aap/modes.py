"""What happens in a turn, and how each stream mode of AAP shows it to the client."""

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


TurnEvent = Piece | Part | Called | Returned | Entered | Stopped
Event = tuple[str, dict[str, Any]]


def _common(item: TurnEvent) -> Event | None:
    match item:
        case Called(call):
            return "tool_call", call
        case Returned(result):
            return "tool_result", result
        case Stopped(reason):
            return "turn_stop", {"stopReason": reason}
        case _:
            return None


async def in_deltas(happened: AsyncIterator[TurnEvent]) -> AsyncIterator[Event]:
    """The mode delta: pieces as they come."""
    async for item in happened:
        if isinstance(item, Piece):
            yield f"{item.kind}_delta", {"delta": item.text}
        elif event := _common(item):
            yield event


async def in_messages(happened: AsyncIterator[TurnEvent]) -> AsyncIterator[Event]:
    """The mode message: whole parts."""
    async for item in happened:
        if isinstance(item, Part):
            yield item.kind, {item.kind: item.text}
        elif event := _common(item):
            yield event


async def in_one_body(happened: AsyncIterator[TurnEvent]) -> dict[str, Any]:
    """The mode none: everything at the end."""
    body: dict[str, Any] = {"stopReason": "error", "messages": []}
    async for item in happened:
        if isinstance(item, Entered):
            body["messages"].append(item.message)
        elif isinstance(item, Stopped):
            body["stopReason"] = item.reason
    return body
