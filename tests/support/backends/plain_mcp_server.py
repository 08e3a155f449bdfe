"""A small MCP server on its standard streams, without the package: it starts at once, and can be made to die."""

import json
import os
import sys
from typing import Any

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
NUMBERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
TOOLS: list[dict[str, Any]] = [
    {"name": "add", "title": "Addition", "description": "Adds two numbers.", "inputSchema": NUMBERS},
    {"name": "clock", "description": "Tells the time, as another tool does, too.", "inputSchema": NOTHING},
    {"name": "who.am.i", "description": "The process that answers.", "inputSchema": NOTHING},
    {"name": "fail", "description": "Complains.", "inputSchema": NOTHING},
    {"name": "die", "description": "Ends the server in the middle of a call.", "inputSchema": NOTHING},
    {"name": "report", "description": "Tells how far it is.", "inputSchema": NOTHING},
]
WORDS = {"clock": "half past mcp", "who.am.i": str(os.getpid()), "report": "there"}


def tell(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def called(name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    if name == "die":
        print("dying now", file=sys.stderr, flush=True)
        os._exit(1)
    if name == "report":
        tell(method="notifications/progress", params={
            "progressToken": meta["progressToken"], "progress": 1, "total": 2, "message": "half way",
        })
    text = str(arguments["a"] + arguments["b"]) if name == "add" else WORDS.get(name, "no good")
    return {"content": [{"type": "text", "text": text}], "isError": name == "fail"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "plain", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return called(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    return {} if method == "ping" else None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and "method" in asked:
        found = answer(asked["method"], asked.get("params") or {})
        if found is None:
            tell(id=asked["id"], error={"code": -32601, "message": "there is no such method"})
        else:
            tell(id=asked["id"], result=found)
