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
from .schema import SCHEMA_VERSION, add_to_counter

__all__ = [
    "SCHEMA_VERSION",
    "Database",
    "StorageUnusable",
    "Work",
    "add_to_counter",
    "create_database",
    "explain_error",
    "lock_database",
    "open_beside_server",
    "open_exclusively",
    "open_read_only",
]
