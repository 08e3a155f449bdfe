"""What dialects share beside sessions, one service each, such as agents, files, keys, memories and schedules."""

from .agents import AGENT_NAME, AgentService, AgentUsage, UnknownModel, model_of, models_of
from .audit import AuditedResources, AuditedSessions
from .change_rules import Changes, RuledResources
from .documents import Document, DocumentEntry, DocumentFolder
from .files import FileStore, create_file_resource
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
    pack_session,
    read_session_lines,
    unpack_session,
    unpack_session_files,
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
from .workspaces import Workspace, WorkspaceItem, Workspaces

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
    "Changes",
    "CombinedDefaults",
    "Document",
    "DocumentEntry",
    "DocumentFolder",
    "Expired",
    "ExpiredThings",
    "FileStore",
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
    "UserChoices",
    "UserSettings",
    "Workspace",
    "WorkspaceItem",
    "Workspaces",
    "addresses_in",
    "create_file_resource",
    "model_of",
    "models_of",
    "pack_session",
    "read_session_lines",
    "read_skill_files",
    "read_skill_zip",
    "run_hourly",
    "unpack_session",
    "unpack_session_files",
    "with_front_matter",
]
