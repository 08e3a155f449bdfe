"""Event logs behind the EventLog port, in memory, SQLite or Redis; export, import, compaction and verification."""

from .export_import import EXPORT_FORMAT, ExportHeader, export_sessions, import_sessions
from .log_file import LogFile, compact_log, erase_traces, open_log_file
from .memory import MemoryLog
from .sqlite import SqliteLog
from .verification import verify_log

__all__ = [
    "EXPORT_FORMAT",
    "ExportHeader",
    "LogFile",
    "MemoryLog",
    "SqliteLog",
    "compact_log",
    "erase_traces",
    "export_sessions",
    "import_sessions",
    "open_log_file",
    "verify_log",
]
