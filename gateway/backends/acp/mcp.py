"""The MCP servers of a session as the protocol spells them; an agent is told of those it can reach."""

from collections.abc import Iterable, Mapping
from typing import Any


def servers(given: Iterable[Mapping[str, Any]], transports: frozenset[str]) -> list[dict[str, Any]]:
    """Those with an address, over a transport that the agent has; a client's commands are never run here."""
    told = []
    for one in given:
        url, kind = one.get("url"), "sse" if one.get("type") == "sse" else "http"
        if isinstance(url, str) and kind in transports:
            named = dict(one.get("headers") or {}).items()
            headers = [{"name": str(name), "value": str(value)} for name, value in named]
            told.append({"type": kind, "name": str(one.get("name") or url), "url": url, "headers": headers})
    return told
