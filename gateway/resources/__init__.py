"""What dialects share beside sessions, one service each: keys, files, memories, schedules, shares, workspaces."""

from .audit import AuditedResources, AuditedSessions
from .files import FileStore, create_file_resource
from .key_service import KeyService
from .keys import KeyStore
from .memories import Memories, Memory, MemoryFilter, StoredMemory
from .scheduler import Scheduler
from .schedules import ScheduledTask, Schedules, StoredRun, StoredTask
from .session_archive import SessionArchive, addresses_in, pack_session, unpack_session, unpack_session_files
from .shares import Share, Shares
from .workspaces import Workspace, WorkspaceItem, Workspaces

__all__ = [
    "AuditedResources",
    "AuditedSessions",
    "FileStore",
    "KeyService",
    "KeyStore",
    "Memories",
    "Memory",
    "MemoryFilter",
    "ScheduledTask",
    "Scheduler",
    "Schedules",
    "SessionArchive",
    "Share",
    "Shares",
    "StoredMemory",
    "StoredRun",
    "StoredTask",
    "Workspace",
    "WorkspaceItem",
    "Workspaces",
    "addresses_in",
    "create_file_resource",
    "pack_session",
    "unpack_session",
    "unpack_session_files",
]
