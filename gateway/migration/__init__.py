"""Moves conversations between servers: imports them, at once or when they are asked for, exports and compares them."""

from .adoption import Adopter, AdoptingSessions, AdoptionSource
from .comparison import Comparison, compare_sessions, spoken_turns
from .exporter import EXPORT_TEXTS, ExportChoice, ExportLine, ExportOutcome, export_sessions_to, history_of
from .file_store import FileSessionStore, open_file_store, waiting_for_file
from .importer import (
    OUTCOME_TEXTS,
    PROBLEMS,
    ImportChoice,
    Importer,
    ImportLine,
    ImportOutcome,
    ImportSummary,
    NoStore,
    SessionStore,
    StoredSession,
)
from .live_store import LiveSessionStore
from .past_records import Destination, ImportMark, Origin, make_records
from .resource_importer import ResourceImporter
from .resource_lines import RESOURCE_TEXTS, GroupSummary, ResourceLine, ResourceOutcome
from .resource_store import NoResources, ResourceStore, ServerResources
from .server_imports import PARTS, ImportNews, ImportOrder, ServerImports

__all__ = [
    "EXPORT_TEXTS",
    "OUTCOME_TEXTS",
    "PARTS",
    "PROBLEMS",
    "RESOURCE_TEXTS",
    "Adopter",
    "AdoptingSessions",
    "AdoptionSource",
    "Comparison",
    "Destination",
    "ExportChoice",
    "ExportLine",
    "ExportOutcome",
    "FileSessionStore",
    "GroupSummary",
    "ImportChoice",
    "ImportLine",
    "ImportMark",
    "ImportNews",
    "ImportOrder",
    "ImportOutcome",
    "ImportSummary",
    "Importer",
    "LiveSessionStore",
    "NoResources",
    "NoStore",
    "Origin",
    "ResourceImporter",
    "ResourceLine",
    "ResourceOutcome",
    "ResourceStore",
    "ServerImports",
    "ServerResources",
    "SessionStore",
    "StoredSession",
    "compare_sessions",
    "export_sessions_to",
    "history_of",
    "make_records",
    "open_file_store",
    "spoken_turns",
    "waiting_for_file",
]
