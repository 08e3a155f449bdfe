"""Where resources, kept responses and keys are stored: in memory, in SQLite, in Redis."""

from .key_tables import SqliteKeyTable, ThreadedKeyTable
from .memory import MemoryResources
from .responses import MemoryResponses, ResponseLimits, SqliteResponses
from .sqlite import SqliteResources
from .sqlite_file import read_stored_resources

__all__ = [
    "MemoryResources",
    "MemoryResponses",
    "ResponseLimits",
    "SqliteKeyTable",
    "SqliteResources",
    "SqliteResponses",
    "ThreadedKeyTable",
    "read_stored_resources",
]
