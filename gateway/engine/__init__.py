"""Runs sessions and turns, and decides when things happen: asks, recovery, streams. asyncio, no HTTP."""

from .recovery import restore_idle
from .runtime import Runtime
from .session import Session
from .session_service import LocalSessionService
from .streams import Cursor, Hub

__all__ = [
    "Cursor",
    "Hub",
    "LocalSessionService",
    "Runtime",
    "Session",
    "restore_idle",
]
