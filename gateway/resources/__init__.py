"""What dialects share beside sessions, one service each, such as agents, files, keys, memories and schedules."""

from .agents import AGENT_NAME, AgentService, AgentUsage, UnknownModel, model_of, models_of
from .audit import AuditedResources, AuditedSessions
from .bucket_workspaces import BucketWorkspaces
from .change_rules import Changes, RuledResources
from .documents import Document, DocumentEntry, DocumentFolder
from .file_folder import FileFolder, content_of
from .file_reader import opened_file
from .files import FileStore, UploadRules, create_file_resource
from .key_service import KeyService
from .keys import KeyStore
from .log_retention import LogRetention
from .mcp_connections import McpConnections
from .mcp_server_records import McpServerChoice, McpServerDefinition, StoredMcpServer
from .mcp_servers import McpServerNotFound, McpServerService
from .memories import MAX_MEMORIES, Memories, Memory, MemoryFilter, RecalledMemory, SessionMemories, StoredMemory
from .named_resources import AlreadyExists, NamedResources
from .retention import Expired, ExpiredThings, Retention, run_hourly
from .scheduler import Scheduler
from .schedules import ScheduledTask, Schedules, StoredRun, StoredTask
from .session_archive import (
    SessionArchive,
    addresses_in,
    read_session_lines,
    session_entries,
    unpack_session,
    unpack_session_files,
    workspace_entries,
)
from .shares import Share, Shares
from .skill_files import MAX_BYTES as MAX_SKILL_BYTES
from .skill_files import MAX_ENTRIES as MAX_SKILL_FILES
from .skill_files import SkillFolder, read_skill_files, read_skill_zip, with_front_matter
from .skill_records import StoredSkill
from .skills import SkillService
from .tools import MAX_SECONDS as MAX_TOOL_SECONDS
from .tools import Invocation, KnownTool, ToolDefinition, ToolService
from .user_settings import CombinedDefaults, UserChoices, UserSettings
from .workspaces import FolderWorkspaces, WorkspaceFolder
from .zip_entries import pack_entries

__all__ = [
    "AGENT_NAME",
    "MAX_MEMORIES",
    "MAX_SKILL_BYTES",
    "MAX_SKILL_FILES",
    "MAX_TOOL_SECONDS",
    "AgentService",
    "AgentUsage",
    "AlreadyExists",
    "AuditedResources",
    "AuditedSessions",
    "BucketWorkspaces",
    "Changes",
    "CombinedDefaults",
    "Document",
    "DocumentEntry",
    "DocumentFolder",
    "Expired",
    "ExpiredThings",
    "FileFolder",
    "FileStore",
    "FolderWorkspaces",
    "Invocation",
    "KeyService",
    "KeyStore",
    "KnownTool",
    "LogRetention",
    "McpConnections",
    "McpServerChoice",
    "McpServerDefinition",
    "McpServerNotFound",
    "McpServerService",
    "Memories",
    "Memory",
    "MemoryFilter",
    "NamedResources",
    "RecalledMemory",
    "Retention",
    "RuledResources",
    "ScheduledTask",
    "Scheduler",
    "Schedules",
    "SessionArchive",
    "SessionMemories",
    "Share",
    "Shares",
    "SkillFolder",
    "SkillService",
    "StoredMcpServer",
    "StoredMemory",
    "StoredRun",
    "StoredSkill",
    "StoredTask",
    "ToolDefinition",
    "ToolService",
    "UnknownModel",
    "UploadRules",
    "UserChoices",
    "UserSettings",
    "WorkspaceFolder",
    "addresses_in",
    "content_of",
    "create_file_resource",
    "model_of",
    "models_of",
    "opened_file",
    "pack_entries",
    "read_session_lines",
    "read_skill_files",
    "read_skill_zip",
    "run_hourly",
    "session_entries",
    "unpack_session",
    "unpack_session_files",
    "with_front_matter",
    "workspace_entries",
]
