"""What a server of a dialect still has of its sessions: lists and histories, read to be stored here."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject

from .remote import DecodedItem, RemoteSession


class PastItem(Struct, frozen=True):
    """A command or a decoded item of a turn, and its time in seconds since the epoch if the server tells it."""

    item: m.AnyCommand | DecodedItem
    at: float | None = None


class PastTurn(Struct, frozen=True, kw_only=True):
    """One turn as the server has it; `turn_id` is None if the dialect has no ids of turns.

    The items after the command need no `RemoteTurnEnd`: without one the turn ended as usual.
    """

    turn_id: str | None = None
    items: Sequence[PastItem] = ()


class PastSession(Struct, frozen=True, kw_only=True):
    """A session with its whole history; `unseen` names what the protocol does not let a client see of it."""

    session: RemoteSession
    metadata: JsonObject = {}
    settings: m.Settings = m.Settings()
    history: Sequence[m.SeedMessage] = ()
    turns: Sequence[PastTurn] = ()
    unseen: Sequence[str] = ()
    is_running: bool = False
    """Whether a turn runs or waits in it, as far as the protocol says so."""


class PastSessions(Protocol):
    """Reads the sessions of a server, and changes nothing there. Every failure is a `GatewayError`."""

    async def page(self, name: str | None) -> tuple[Sequence[RemoteSession], str | None]:
        """A page of the list, first the page None, and the name of the next; None after the last page."""
    async def read(self, session_id: str) -> PastSession:
        """One session; `NotFound` if the server does not have it."""
    async def close(self) -> None: ...
