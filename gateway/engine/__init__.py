"""Who does it, and when: sessions, their turns, open asks and those who watch; asyncio and no HTTP."""

from .hub import Cursor, Hub
from .session import House, Session
from .sessions import SessionService

__all__ = ["Cursor", "House", "Hub", "Session", "SessionService"]
