"""What dialects share beside conversations: one store, several projections."""

from .answers import Bounds, MemoryAnswers, SqliteAnswers
from .archive import Archive, pack, unpack, unpack_files
from .audited import AuditedResources, AuditedSessions
from .files import FileStore
from .key_tables import SqliteKeyTable, ThreadedKeyTable
from .keys import Key, Keys, KeyStore, KeyTable
from .live_keys import AsyncKeyTable, LiveKeys
from .memories import Kept, Memories, Memory
from .memory import MemoryResources
from .record_addresses import addresses_in
from .scheduler import Scheduler
from .schedules import KeptRun, KeptTask, Schedules, Task
from .sharing import Share, Sharing
from .sqlite import SqliteResources
from .workspace import Item, Workspace, Workspaces

__all__ = [
    "Archive",
    "AsyncKeyTable",
    "AuditedResources",
    "AuditedSessions",
    "Bounds",
    "FileStore",
    "Item",
    "Kept",
    "KeptRun",
    "KeptTask",
    "Key",
    "KeyStore",
    "KeyTable",
    "Keys",
    "LiveKeys",
    "Memories",
    "Memory",
    "MemoryAnswers",
    "MemoryResources",
    "Scheduler",
    "Schedules",
    "Share",
    "Sharing",
    "SqliteAnswers",
    "SqliteKeyTable",
    "SqliteResources",
    "Task",
    "ThreadedKeyTable",
    "Workspace",
    "Workspaces",
    "addresses_in",
    "pack",
    "unpack",
    "unpack_files",
]
