"""What the reference server remembers: sessions, and how it says no."""

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from conformance.faults.script import Script

_places = count(1)


class Refusal(Exception):
    """A request is answered with this status and these words."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


@dataclass
class Session:
    """One conversation: configuration, history, and the calls that wait for the client."""

    id: str
    agent: str
    tools: dict[str, bool] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    client_tools: list[dict[str, Any]] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    script: Script = field(default_factory=Script)
    running: bool = False
    place: int = field(default_factory=lambda: next(_places))

    def copy(self) -> "Session":
        return deepcopy(self)


def as_blocks(content: Any) -> list[dict[str, Any]]:
    """Content as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(content: Any) -> str:
    """The text in any content."""
    return "".join(block.get("text", "") for block in as_blocks(content))


def images_in(messages: list[dict[str, Any]]) -> list[str]:
    """The addresses of all images in the messages."""
    blocks = [block for message in messages for block in as_blocks(message["content"])]
    return [block["url"] for block in blocks if block["type"] == "image"]
