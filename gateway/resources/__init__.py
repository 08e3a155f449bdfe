"""What dialects share beside conversations: one store, several projections."""

from .answers import Bounds, MemoryAnswers, SqliteAnswers
from .archive import Archive, pack, unpack, unpack_files
from .files import FileStore
from .keys import Key, KeyStore
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
    "Bounds",
    "FileStore",
    "Item",
    "Kept",
    "KeptRun",
    "KeptTask",
    "Key",
    "KeyStore",
    "Memories",
    "Memory",
    "MemoryAnswers",
    "MemoryResources",
    "Scheduler",
    "Schedules",
    "Share",
    "Sharing",
    "SqliteAnswers",
    "SqliteResources",
    "Task",
    "Workspace",
    "Workspaces",
    "addresses_in",
    "pack",
    "unpack",
    "unpack_files",
]
