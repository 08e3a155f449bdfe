"""Where things outlive the process: one SQLite file that log, resources and answers share."""

from .counting import counted
from .database import Database
from .opening import Unusable, alone, locked, make, reading
from .opening import why as trouble_of
from .schema import SCHEMA_VERSION

__all__ = ["SCHEMA_VERSION", "Database", "Unusable", "alone", "counted", "locked", "make", "reading", "trouble_of"]
