"""Append-only event logs, one like the other behind the EventLog port; and what is done with one that stands still."""

from .carry import FORMAT, Header, exported, take_in
from .compact import compact
from .file import LogFile, log_file
from .memory import MemoryLog
from .sqlite import SqliteLog
from .verify import verify

__all__ = [
    "FORMAT",
    "Header",
    "LogFile",
    "MemoryLog",
    "SqliteLog",
    "compact",
    "exported",
    "log_file",
    "take_in",
    "verify",
]
