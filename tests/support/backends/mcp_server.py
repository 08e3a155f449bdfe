"""A real MCP server for tests: as a program on its standard streams, as a module one to be served over HTTP."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tests")
PIXEL = b"\x89PNG\r\n\x1a\n"


@server.tool(title="Addition")
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


@server.tool()
def clock() -> str:
    """Tells the time, as another tool does, too."""
    return "half past mcp"


@server.tool(name="who.am.i")
def who() -> str:
    """The process that answers, its folder, and the secret that it was given."""
    return f"{os.getpid()} {Path.cwd().name} {os.environ.get('MCP_SECRET')} {os.environ.get('HOUSE_SECRET')}"


@server.tool()
def fail() -> str:
    """Complains, and repeats a secret."""
    raise ToolError(f"no good, {os.environ.get('MCP_SECRET')}")


@server.tool()
def die() -> str:
    """Ends the server in the middle of a call."""
    print("dying now", file=sys.stderr, flush=True)
    os._exit(1)


@server.tool()
def picture() -> list[Image | str]:
    """A picture and a word."""
    return [Image(data=PIXEL, format="png"), "seen"]


@server.tool()
async def report(context: Context) -> str:  # type: ignore[type-arg]
    """Tells how far it is."""
    await context.report_progress(1, 2, "half way")
    return "there"


if __name__ == "__main__":
    server.run("stdio")
