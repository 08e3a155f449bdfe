"""Runs sessions and turns, and decides when things happen: asks, recovery, streams. asyncio, no HTTP."""

from .known_requests import RANDOM_LENGTH, KnownRequests, is_keyed, keyed_request
from .recovery import restore_idle
from .runtime import Runtime, SessionCleanup, TurnTracer
from .session import Session
from .session_cache import (
    SessionCache,
    SessionCommits,
    SessionSource,
    SessionTable,
    find_session,
    unknown_unless_stored,
    wait_until_stored,
)
from .session_service import LocalSessionService, local_session_service
from .streams import Cursor, Hub

__all__ = [
    "RANDOM_LENGTH",
    "Cursor",
    "Hub",
    "KnownRequests",
    "LocalSessionService",
    "Runtime",
    "Session",
    "SessionCache",
    "SessionCleanup",
    "SessionCommits",
    "SessionSource",
    "SessionTable",
    "TurnTracer",
    "find_session",
    "is_keyed",
    "keyed_request",
    "local_session_service",
    "restore_idle",
    "unknown_unless_stored",
    "wait_until_stored",
]
