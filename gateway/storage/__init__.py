"""What outlives the process: the log and the resources, in memory, in SQLite or in Redis."""

from .sealing import UNSEALED, FernetSeal, Seal, is_sealed, load_or_create_key
from .sqlite import (
    SCHEMA_VERSION,
    Database,
    StorageUnusable,
    Work,
    add_to_counter,
    create_database,
    explain_error,
    lock_database,
    open_beside_server,
    open_exclusively,
    open_read_only,
)

__all__ = [
    "SCHEMA_VERSION",
    "UNSEALED",
    "Database",
    "FernetSeal",
    "Seal",
    "StorageUnusable",
    "Work",
    "add_to_counter",
    "create_database",
    "explain_error",
    "is_sealed",
    "load_or_create_key",
    "lock_database",
    "open_beside_server",
    "open_exclusively",
    "open_read_only",
]
