"""The state of the AAP reference server: its sessions."""

from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from conformance.faults.script import Script

_places = count(1)


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


@dataclass
class State:
    """All that the server keeps."""

    sessions: dict[str, Session] = field(default_factory=dict)
