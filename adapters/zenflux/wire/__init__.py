"""Models of what ZenFlux clients send, and the dialect's settings."""

from .agents import AgentChange, AgentFields, NewAgent
from .chat import (
    ANY_IMAGE,
    DIALECT_NAME,
    LOCAL_USER,
    ChatAbort,
    ChatRequest,
    ChatSend,
    ConfirmationRequest,
    ContinueRequest,
    FileReference,
    RollbackRequest,
    SessionResume,
    ZenfluxSettings,
)
from .mcp_servers import AgentMcpServer, CommandFields, McpServerChange, NewMcpServer
from .memories import MemoryBatch, MemorySearch, MemoryUpdate, NewMemories
from .query import MAX_TITLE, bool_param, choice_param, page_params, title_param, whole_number_param
from .skills import SkillChoice, SkillSwitch, SkillText
from .tasks import TaskBatch, TaskStart
from .tools import ToolDefinitionBody, ToolExecution, ToolRegistration

__all__ = [
    "ANY_IMAGE",
    "DIALECT_NAME",
    "LOCAL_USER",
    "MAX_TITLE",
    "AgentChange",
    "AgentFields",
    "AgentMcpServer",
    "ChatAbort",
    "ChatRequest",
    "ChatSend",
    "CommandFields",
    "ConfirmationRequest",
    "ContinueRequest",
    "FileReference",
    "McpServerChange",
    "MemoryBatch",
    "MemorySearch",
    "MemoryUpdate",
    "NewAgent",
    "NewMcpServer",
    "NewMemories",
    "RollbackRequest",
    "SessionResume",
    "SkillChoice",
    "SkillSwitch",
    "SkillText",
    "TaskBatch",
    "TaskStart",
    "ToolDefinitionBody",
    "ToolExecution",
    "ToolRegistration",
    "ZenfluxSettings",
    "bool_param",
    "choice_param",
    "page_params",
    "title_param",
    "whole_number_param",
]
