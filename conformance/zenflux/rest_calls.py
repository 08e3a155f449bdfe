"""The calls of the REST API and the requirement of each: a failed call is a finding of its own requirement."""

import re
from functools import cache

BASE = "/api/v1"
ENDPOINTS = {
    "3.1": "POST /chat, POST /session/{id}/stop, POST /session/{id}/confirm_continue, POST /session/{id}/rollback, "
    "GET /session/{id}, DELETE /session/{id}, GET /sessions",
    "3.2": "POST /conversations, GET /conversations, GET /conversations/{id}, PUT /conversations/{id}, "
    "DELETE /conversations/{id}, GET /conversations/{id}/messages, GET /conversations/search, "
    "POST /conversations/{id}/preload, GET /conversations/{id}/summary",
    "3.3": "GET /human-confirmation/pending, POST /human-confirmation/{session_id}, "
    "GET /human-confirmation/{request_id}, DELETE /human-confirmation/{request_id}",
    "3.4": "POST /files/upload",
    "3.5": "GET /agents, POST /agents, GET /agents/{id}, PUT /agents/{id}, DELETE /agents/{id}, GET /agents/templates, "
    "POST /agents/validate, POST /agents/reload, POST /agents/{id}/reload, GET /agents/{id}/prompt, "
    "GET /agents/{id}/mcp, POST /agents/{id}/mcp/{name}, PUT /agents/{id}/mcp/{name}, DELETE /agents/{id}/mcp/{name}, "
    "GET /agents/{id}/mcp/available",
    "3.6": "GET /skills/global, GET /skills/instance/{agent_id}, POST /skills/install, POST /skills/uninstall, "
    "POST /skills/toggle, POST /skills/update_content, GET /skills/detail/{name}, "
    "GET /skills/file/{name}/{type}/{file}, POST /skills/upload",
    "3.7": "GET /tools, GET /tools/{name}, POST /tools/register, DELETE /tools/{name}, POST /tools/execute, "
    "POST /tools/{name}/invoke, GET /tools/schemas, POST /tools/mcp/register, GET /tools/mcp, GET /tools/mcp/{name}, "
    "PUT /tools/mcp/{name}, DELETE /tools/mcp/{name}",
    "3.8": "GET /models",
    "3.9": "GET /settings, PUT /settings, GET /settings/status, GET /settings/schema",
    "3.10": "POST /mem0/search, GET /mem0/user/{user_id}, POST /mem0/add, POST /mem0/batch-update, "
    "DELETE /mem0/memory/{id}, DELETE /mem0/user/{user_id}",
    "3.11": "GET /tasks, GET /tasks/{name}, POST /tasks/{name}/run, POST /tasks/{name}/batch, "
    "GET /tasks/scheduled/config, GET /tasks/scheduled/status",
    "3.12": "GET /docs/structure, GET /docs/content/{path}",
}
HEALTH = {"/health": "ZF-HTTP-3.13-01", "/health/live": "ZF-HTTP-3.13-02", "/health/metrics": "ZF-HTTP-3.13-03"}
PLACEHOLDER = re.compile(r"\{\w+\}")
WHOLE_REST = "{path}"


def owner_of(method: str, path: str) -> str | None:
    """The requirement that a call is, by its method and its path below the base path; None for any other call."""
    plain = path.partition("?")[0]
    if plain in HEALTH:
        return HEALTH[plain]
    return next((name for called, pattern, name in _patterns() if called == method and pattern.fullmatch(plain)), None)


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Methods, paths and requirements; paths without placeholders come first, for none of them is a name."""
    found: list[tuple[int, str, re.Pattern[str], str]] = []
    for section, endpoints in ENDPOINTS.items():
        for number, endpoint in enumerate(endpoints.split(", "), 1):
            method, path = endpoint.split()
            pattern = re.escape(path).replace(re.escape(WHOLE_REST), ".+")
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", pattern)
            found.append((path.count("{"), method, re.compile(pattern), f"ZF-HTTP-{section}-{number:02}"))
    return tuple((method, pattern, name) for _, method, pattern, name in sorted(found, key=lambda item: item[0]))
