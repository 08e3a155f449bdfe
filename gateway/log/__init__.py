"""Append-only event logs, one like the other behind the EventLog port."""

from .memory import MemoryLog

__all__ = ["MemoryLog"]
