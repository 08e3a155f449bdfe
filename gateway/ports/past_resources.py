"""What a server of a dialect shows of a user beside sessions: read to be stored here."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject


class ResourceGroup(StrEnum):
    """The groups in which things beside sessions are imported."""

    AGENTS = "agents"
    MEMORIES = "memories"
    FILES = "files"
    SCHEDULES = "schedules"


EnabledTools = Callable[[m.AgentCard], dict[str, m.Permission] | None]
"""The permissions of the enabled tools of an agent of the settings; None if nothing is said about them."""


class PastResource(Struct, frozen=True, kw_only=True):
    """Something that a server shows; `body` is in the gateway's own format, as it is stored here."""

    kind: str
    resource_id: str
    """The id there."""
    body: JsonObject = {}
    parent: str = ""
    """The id there of what it belongs to, which is of the kind `parent_kind`."""
    parent_kind: str = ""
    agent: str = ""
    """The name of the agent of the settings here that would have this id."""
    tools: EnabledTools | None = None
    """Of an agent: which tools it has of an agent of the settings; None for all."""
    unseen: Sequence[str] = ()
    """What the protocol does not let a client see of it, or what cannot be kept."""
    hidden: str = ""
    """What it is made of that the server does not show, if it cannot be made here without that."""


class PastResources(Protocol):
    """Reads what a server shows beside sessions, and changes nothing there. Every failure is a `GatewayError`."""

    @property
    def unseen(self) -> Mapping[ResourceGroup, str]:
        """What the protocol does not let a client see of a group, or of which no list exists."""
    def read(self, group: ResourceGroup) -> AsyncIterator[PastResource]:
        """Everything of a group that the server lists; what belongs to something comes after that."""
    def content(self, file_id: str) -> AsyncIterator[bytes]:
        """The bytes of a file."""
    async def close(self) -> None: ...
