"""MCP servers as tools: clients of the servers, and the tools that an agent or a session has of them."""

from .client import McpServerSettings, check_installed
from .tool_lists import McpToolLists
from .tool_servers import McpToolServers

__all__ = ["McpServerSettings", "McpToolLists", "McpToolServers", "check_installed"]
