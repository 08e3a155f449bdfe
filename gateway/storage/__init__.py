"""Where things outlive the process: one SQLite file that log, resources and answers share."""

from .counting import counted
from .database import Database
from .groups import Work
from .opening import Unusable, alone, beside, locked, make, reading
from .opening import why as trouble_of
from .schema import SCHEMA_VERSION
from .sealing import UNSEALED, Seal, is_sealed, key_in

__all__ = [
    "SCHEMA_VERSION",
    "UNSEALED",
    "Database",
    "Seal",
    "Unusable",
    "Work",
    "alone",
    "beside",
    "counted",
    "is_sealed",
    "key_in",
    "locked",
    "make",
    "reading",
    "trouble_of",
]
