"""Who does it, and when: sessions, their turns, open asks and those who watch; asyncio and no HTTP."""

from .closing import missing_ends
from .cursor import Cursor
from .desk import resolution_of
from .house import House
from .hub import Hub
from .returning import restore_idle
from .session import Session
from .sessions import SessionService

__all__ = ["Cursor", "House", "Hub", "Session", "SessionService", "missing_ends", "resolution_of", "restore_idle"]
