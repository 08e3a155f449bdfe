"""The addresses that a client named in the records of a session: asked before records from elsewhere are taken over."""

from collections.abc import Iterable, Iterator
from typing import Any

from gateway.model import (
    Configure,
    Content,
    FilePart,
    ImagePart,
    InputAccepted,
    Record,
    ReturnResult,
    SendMessage,
    SessionCreated,
    SessionUpdated,
    Settings,
    ToolReturned,
    parts_of,
)

Named = tuple[str, str]
"""Where an address stands, and the address."""


def addresses_in(records: Iterable[Record]) -> Iterator[Named]:
    """Pictures, files and MCP servers of clients, and pages that a tool's card has a browser load."""
    for record in records:
        for field, url in _of_event(record.event):
            yield f"record {record.seq}: {field}", url


def _of_event(event: Any) -> Iterator[Named]:
    match event:
        case SessionCreated(settings=settings, history=history):
            yield from _of_settings(settings)
            for message in history:
                yield from _of_content(message.content)
        case SessionUpdated(settings=Settings() as settings) | InputAccepted(command=Configure(settings=settings)):
            yield from _of_settings(settings)
        case InputAccepted(command=SendMessage(content=content, results=results)):
            yield from _of_content(content)
            for message in results:
                yield from _of_content(message.content)
        case InputAccepted(command=ReturnResult(content=content)):
            yield from _of_content(content)
        case ToolReturned(meta={"ui": {"resourceUri": str() as url}}):
            yield "resourceUri", url


def _of_settings(settings: Settings) -> Iterator[Named]:
    for number, server in enumerate(settings.mcp_servers):
        if "url" in server:
            yield f"mcp_servers.{number}.url", str(server["url"])


def _of_content(content: Content) -> Iterator[Named]:
    for part in parts_of(content):
        if isinstance(part, ImagePart | FilePart) and part.url:
            yield "url", part.url
