"""Append-only event logs, one like the other behind the EventLog port."""

from .file import LogFile, log_file
from .memory import MemoryLog
from .sqlite import SqliteLog

__all__ = ["LogFile", "MemoryLog", "SqliteLog", "log_file"]
