"""Letters on their way through Redis: what is secret in them is sealed there, as it is in the log."""

from collections.abc import Callable
from dataclasses import replace as replaced
from typing import Any

from msgspec.structs import replace

from gateway.model import command_with_secrets, metadata_with_secrets, with_secrets
from gateway.storage import UNSEALED, Seal

from .letters import Asked, Letter, Replied, Submit, Update

Change = Callable[[dict[str, Any]], dict[str, Any]]


def sealed(letter: Letter, seal: Seal) -> Letter:
    return letter if seal is UNSEALED else _with_secrets(letter, seal.closed)


def opened(letter: Letter, seal: Seal) -> Letter:
    return letter if seal is UNSEALED else _with_secrets(letter, seal.opened)


def _with_secrets(letter: Letter, change: Change) -> Letter:
    """The same letter, whatever is secret in it changed: commands, a session's metadata, the records of a receipt."""
    match letter:
        case Asked(call=Submit(commands=commands) as call):
            told = tuple(command_with_secrets(command, change) for command in commands)
            return replace(letter, call=replace(call, commands=told))
        case Asked(call=Update(metadata=metadata) as call) if metadata is not None:
            return replace(letter, call=replace(call, metadata=metadata_with_secrets(metadata, change)))
        case Replied(receipt=receipt) if receipt is not None:
            records = tuple(with_secrets(record, change) for record in receipt.records)
            return replace(letter, receipt=replaced(receipt, records=records))
    return letter
