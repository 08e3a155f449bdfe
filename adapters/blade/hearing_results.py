"""What tools gave, read from Blade: words, parts, anything else as JSON; and what is meant for the page."""

from typing import Any

import msgspec

from gateway.model import AnyPart, Content, DataPart, FilePart, ImagePart, TextPart

from .hearing_words import optional_text
from .wire import BlockType

META = "_meta"
PAGE = {str(BlockType.TOOL_BRIDGE): "bridge", str(BlockType.TOOL_UI): "ui"}
"""The blocks that repeat what a result hands to the page, and its word for it."""


def result_of(value: Any) -> tuple[Content, dict[str, Any] | None]:
    """The content of a result and its meta."""
    if not isinstance(value, dict) or not isinstance(value.get(META), dict):
        return _content(value), None
    rest = {key: item for key, item in value.items() if key != META}
    return _content(rest["content"] if list(rest) == ["content"] else rest or None), value[META]


def _content(value: Any) -> Content:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        parts = [_part(item) for item in value]
        if None not in parts:
            return tuple(part for part in parts if part is not None)
    return msgspec.json.encode(value).decode()


def _part(item: Any) -> AnyPart | None:
    """One part as the table spells it; None for anything else."""
    if not isinstance(item, dict):
        return None
    match item:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return ImagePart(url=url)
        case {"type": "file", "name": str(name)}:
            return FilePart(name=name, file_id=optional_text(item.get("file_id")), url=optional_text(item.get("url")))
        case {"type": str(kind), "content": content}:
            return DataPart(type=kind, content=content)
    return None
