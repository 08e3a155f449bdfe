"""A situation: the instruction for the person or the driver, and the replies that the scripted server plays."""

from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from conformance.clients.agent_actions import Reply

TOOL = {
    "name": "examiners_lookup",
    "description": "Looks a word up in the examiners' own dictionary.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
}
"""The tool that a client declares where it is told to."""
SERVER_TOOL = "calc"
"""The tool of the server that a client lets the agent use."""
ECHO = "{answer}"
"""In place of a message: the answer to the message before, word for word."""


@dataclass(frozen=True)
class Instruction:
    """What to do, in words for a person and in values for a script."""

    words: tuple[str, ...]
    messages: tuple[str, ...] = ("Hello from the examiners.",)
    """The messages to send, each when the turn before is over."""
    tool: dict[str, Any] | None = None
    """The tool to declare as the client's own."""
    result: str | None = None
    """What the client's tool returns."""
    server_tool: str | None = None
    """The server's tool that the agent may use, asking first."""
    is_trusted: bool = False
    """Whether the server's tool may be used without asking."""
    decision: str | None = None
    """allow or deny: what to say when the agent asks for permission."""
    option: int | None = None
    """Which option of a question to choose, counted from 0."""
    stop: bool = False
    """Whether to stop the turn as soon as a part of the answer is there."""


@dataclass(frozen=True)
class Situation:
    """One situation; each message of the client takes the next of the replies, and the last of them stays."""

    name: str
    section: str
    sentence: str
    """What is played."""
    instruction: Instruction
    replies: tuple[Reply, ...]
    watch: float = 0.0
    """For how many seconds the client is watched after the last reply, so that a storm of retries is seen."""
    quiet: float = 0.0
    """For how many seconds more than usual nothing may happen."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of this situation for the dialect's scripted server."""


@dataclass(frozen=True)
class Cue:
    """What a driver is given: the situation's name, where the server is, and the instruction."""

    situation: str
    url: str
    key: str | None
    instruction: Instruction

    def environment(self) -> dict[str, str]:
        """The variables that a driver command finds."""
        return {
            "DRAGOMAN_URL": self.url,
            "DRAGOMAN_KEY": self.key or "",
            "DRAGOMAN_SITUATION": self.situation,
            "DRAGOMAN_TEXT": self.instruction.messages[0],
            "DRAGOMAN_INSTRUCTION": orjson.dumps(asdict(self.instruction)).decode(),
        }

    @classmethod
    def from_environment(cls, variables: Any) -> "Cue":
        """The cue that a driver command was given."""
        told = orjson.loads(variables["DRAGOMAN_INSTRUCTION"])
        told |= {name: tuple(told[name]) for name in ("words", "messages")}
        key = variables.get("DRAGOMAN_KEY") or None
        return cls(variables["DRAGOMAN_SITUATION"], variables["DRAGOMAN_URL"], key, Instruction(**told))
