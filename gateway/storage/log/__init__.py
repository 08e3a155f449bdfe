"""Event logs behind the EventLog port, in memory, SQLite or Redis; export, import, compaction and verification."""

from .export_import import (
    EXPORT_FORMAT,
    ExportHeader,
    export_header,
    export_records,
    export_sessions,
    import_sessions,
    store_sessions,
)
from .log_file import LogFile, SqliteOwnerTraces, compact_log, open_log_file
from .memory import MemoryLog
from .sqlite import SqliteLog
from .verification import verify_log

__all__ = [
    "EXPORT_FORMAT",
    "ExportHeader",
    "LogFile",
    "MemoryLog",
    "SqliteLog",
    "SqliteOwnerTraces",
    "compact_log",
    "export_header",
    "export_records",
    "export_sessions",
    "import_sessions",
    "open_log_file",
    "store_sessions",
    "verify_log",
]
