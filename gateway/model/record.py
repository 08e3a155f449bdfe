"""An event as the log keeps it: numbered, timed and placed by the engine, never by a backend."""

from collections.abc import Callable
from typing import Any, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gateway.json_values import JsonObject

from .commands import AnyCommand, Configure, SendMessage
from .content import Settings
from .enums import ROOT
from .events import AnyEvent, InputAccepted, SessionCreated, SessionUpdated

PRIVATE = "dragoman.private"
"""The key of a session's metadata under which dialects keep what no client is shown, each under its own name."""
SECRETS = "secrets"
"""The key of what a dialect keeps there under which its secrets stand, by name."""
MODEL_VERSION = 1
"""Stored beside every log, so that an old one can still be read after the model has grown."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One event in its place: `seq` is dense per session and starts at 1; `at` is seconds since the epoch."""

    seq: int
    at: float
    session_id: str
    event: AnyEvent
    turn_id: str | None = None
    scope_id: str = ROOT

    def __deepcopy__(self, memo: object) -> Self:
        """A record never changes, so copies of what remembers it share it."""
        return self

    @property
    def event_id(self) -> str:
        """Made from the record itself, so that replay gives the same id and the hot path makes none."""
        return event_id_of(self.session_id, self.seq)


def event_id_of(session_id: str, seq: int) -> str:
    """The id of the event of that record."""
    return f"evt_{session_id.rpartition('_')[2]}_{seq}"


def seq_of_event(session_id: str, event_id: str) -> int | None:
    """The number of the record that an event id names; None if the id belongs to no event of this session."""
    stem, _, number = event_id.rpartition("_")
    if stem != f"evt_{session_id.rpartition('_')[2]}" or not (number.isascii() and number.isdigit()):
        return None
    return int(number) if len(number) < 16 and number[0] != "0" else None


def with_settings(record: Record, change: Callable[[Settings], Settings]) -> Record:
    """A copy of the record with changed settings, if the record has settings."""
    event = record.event
    if isinstance(event, SessionCreated | SessionUpdated) and event.settings is not None:
        return replace(record, event=replace(event, settings=change(event.settings)))
    if isinstance(event, InputAccepted) and isinstance(event.command, Configure):
        command = replace(event.command, settings=change(event.command.settings))
        return replace(record, event=replace(event, command=command))
    return record


SecretChange = Callable[[dict[str, Any]], dict[str, Any]]


def with_secrets(record: Record, change: SecretChange) -> Record:
    """A copy of the record with changed secrets: those of settings, of a message, and of private metadata."""
    event = record.event
    if isinstance(event, InputAccepted):
        command = command_with_secrets(event.command, change)
        if command is not event.command:
            record = replace(record, event=replace(event, command=command))
    elif isinstance(event, SessionCreated | SessionUpdated):
        record = with_settings(record, lambda settings: _hidden(settings, change))
        if event.metadata and PRIVATE in event.metadata:
            metadata = metadata_with_secrets(event.metadata, change)
            record = replace(record, event=replace(record.event, metadata=metadata))
    return record


def command_with_secrets(command: AnyCommand, change: SecretChange) -> AnyCommand:
    """A copy of the command with changed secrets."""
    if isinstance(command, SendMessage) and command.variables:
        return replace(command, variables=change(command.variables))
    if isinstance(command, Configure):
        settings = _hidden(command.settings, change)
        return command if settings is command.settings else replace(command, settings=settings)
    return command


def metadata_with_secrets(metadata: JsonObject, change: SecretChange) -> JsonObject:
    """A copy of the metadata of a session, in which the secrets of the dialects are changed."""
    return {**metadata, PRIVATE: _with_changed_secrets(metadata[PRIVATE], change)} if PRIVATE in metadata else metadata


def _hidden(settings: Settings, change: SecretChange) -> Settings:
    if not settings.secrets and not settings.mcp_headers:
        return settings
    return replace(settings, secrets=change(settings.secrets), mcp_headers=change(settings.mcp_headers))


def _with_changed_secrets(private: object, change: SecretChange) -> Any:
    """The private metadata, in which each dialect has its own part, with the secrets of every part changed."""
    if not isinstance(private, dict):
        return private
    return {
        name: {**own, SECRETS: change(own[SECRETS])} if isinstance(own, dict) and isinstance(own.get(SECRETS), dict)
        else own for name, own in private.items()
    }


encode_record = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(Record).decode
