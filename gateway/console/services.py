"""What the handlers of the console may use: the services of the core, and what the settings say now."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.errors import Overloaded
from gateway.http import Metrics
from gateway.ports import Addresses, Clock, Files, Resources, SessionService
from gateway.resources import KeyService

from .columns import ConsoleColumns, ServedParts


@dataclass(frozen=True, kw_only=True)
class DialectPlace:
    """A served dialect: where it is mounted."""

    name: str
    mount: str


@dataclass(frozen=True, kw_only=True)
class ConsoleServices:
    """The services of one server; what a reload can change is asked for each time."""

    sessions: SessionService
    resources: Resources
    files: Files
    parts: Callable[[], ServedParts]
    columns: ConsoleColumns
    places: Sequence[DialectPlace]
    watchers: Callable[[str], Collection[str]]
    """(session) → the dialects whose clients watch the session on this server."""
    auth: tuple[str, ...]
    version: str
    clock: Clock
    heartbeat: Callable[[], float]
    send_timeout: Callable[[], float]
    limits: Callable[[], Mapping[str, Any]]
    addresses: Callable[[], Addresses]
    data: Path
    metrics: Metrics
    keys: KeyService
    trust_uploads: Callable[[], bool] = lambda: False
    is_stopping: Callable[[], bool] = lambda: False
    check_stored_bytes: Callable[[str, int], None] = lambda owner, size: None
    default_agent: Callable[[], str] = lambda: ""
    started_at: float = field(default=0.0)

    def check_open(self) -> None:
        """Refuse new streams while the server is about to stop."""
        if self.is_stopping():
            raise Overloaded("the server is shutting down; try again when it is back")
