"""Moves conversations between servers: imports what another server has, and compares both sides."""

from .comparison import Comparison, compare_sessions, spoken_turns
from .file_store import FileSessionStore, open_file_store
from .importer import (
    OUTCOME_TEXTS,
    PROBLEMS,
    ImportChoice,
    Importer,
    ImportLine,
    ImportOutcome,
    NoStore,
    SessionStore,
    StoredSession,
)
from .past_records import Destination, ImportMark, Origin, make_records

__all__ = [
    "OUTCOME_TEXTS",
    "PROBLEMS",
    "Comparison",
    "Destination",
    "FileSessionStore",
    "ImportChoice",
    "ImportLine",
    "ImportMark",
    "ImportOutcome",
    "Importer",
    "NoStore",
    "Origin",
    "SessionStore",
    "StoredSession",
    "compare_sessions",
    "make_records",
    "open_file_store",
    "spoken_turns",
]
