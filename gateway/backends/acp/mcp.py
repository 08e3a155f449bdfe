"""The MCP servers of a session as the protocol spells them; an agent is told of those it can reach."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import structlog

from gateway.ports import Addresses

from .relay import McpRelay

log = structlog.get_logger("dragoman.acp")


async def servers(
    given: Iterable[Mapping[str, Any]], transports: frozenset[str], addresses: Addresses, relay: McpRelay,
) -> list[dict[str, Any]]:
    """Those with an address, over a transport that the agent has; a client's commands are never run here.

    A host that the operator has listed is told as it is. Any other is behind the relay, which can carry the transport
    `http` alone: `sse` has the server name a second address.
    """
    told = []
    for one in given:
        url, kind = one.get("url"), "sse" if one.get("type") == "sse" else "http"
        if not isinstance(url, str) or kind not in transports:
            continue
        problem = addresses.problem(url)
        is_listed = problem is None and addresses.allows_name(urlsplit(url).hostname or "")
        if problem is None and kind == "sse" and not is_listed:
            problem = "an MCP server of type sse is passed on only if `outbound: {allow: [...]}` lists its host"
        if problem is not None:
            log.warning("an MCP server of a session is not passed on to the agent", name=one.get("name"), why=problem)
            continue
        named = dict(one.get("headers") or {}).items()
        headers = [{"name": str(name), "value": str(value)} for name, value in named]
        told.append({"type": kind, "name": str(one.get("name") or url),
                     "url": url if is_listed else await relay.address(url), "headers": headers})
    return told
