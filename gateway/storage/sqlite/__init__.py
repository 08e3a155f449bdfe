"""The SQLite database: its schema, its connections, and the one thread that writes."""

from .connection import (
    StorageUnusable,
    create_database,
    explain_error,
    lock_database,
    open_beside_server,
    open_exclusively,
    open_read_only,
)
from .database import Database, Work
from .schema import SCHEMA_VERSION, add_to_counter, version_of
from .session_lists import created_rows, leave_lists, list_page, list_size, update_lists
from .session_texts import forget_texts, has_new_texts, index_texts, sessions_mentioning
from .terms import IN_USE, add_terms, ordinals_of, records_with_terms, remove_terms, term_counts

__all__ = [
    "IN_USE",
    "SCHEMA_VERSION",
    "Database",
    "StorageUnusable",
    "Work",
    "add_terms",
    "add_to_counter",
    "create_database",
    "created_rows",
    "explain_error",
    "forget_texts",
    "has_new_texts",
    "index_texts",
    "leave_lists",
    "list_page",
    "list_size",
    "lock_database",
    "open_beside_server",
    "open_exclusively",
    "open_read_only",
    "ordinals_of",
    "records_with_terms",
    "remove_terms",
    "sessions_mentioning",
    "term_counts",
    "update_lists",
    "version_of",
]
