"""What turns are made of, from what the house has: words, pictures and files named, cards and plans as they are."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gateway.model import AnyPart, FilePart, ImagePart, TextPart, in_markdown

from .turns import Block, Call
from .wire import BLOCK_TYPES, BlockType

LOADED = re.compile(r"https?://", re.IGNORECASE)
"""How the address of a page begins that a browser loads."""


def blocks_of(parts: Iterable[AnyPart]) -> list[Block]:
    """What a person said; Blade's turns have words only, so pictures and files are named."""
    return [block for part in parts if (block := _block_of(part)) is not None]


def _block_of(part: AnyPart) -> Block | None:
    match part:
        case TextPart(text=text):
            return Block(BlockType.TEXT, text) if text else None
        case ImagePart(url=url):
            return Block(BlockType.TEXT, "![image](data:)" if url.startswith("data:") else in_markdown(part))
        case FilePart(name=name):
            return Block(BlockType.TEXT, f"[{name}]")
    return None


def data_block(kind: str, content: Any, call: Call | None) -> Block:
    """A piece of a kind that Blade does not know is told as a notification."""
    if kind in BLOCK_TYPES:
        return Block(kind, content, call)
    return Block(BlockType.SYSTEM_NOTIFICATION, content if isinstance(content, str) else kind, call)


def page_meta(meta: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a result hands to the page, without a card that a browser would not load but run (`javascript:`)."""
    card = (meta or {}).get("ui")
    address = card.get("resourceUri") if isinstance(card, dict) else None
    if not meta or not address or (isinstance(address, str) and LOADED.match(address)):
        return meta
    return {word: value for word, value in meta.items() if word != "ui"}


def meta_blocks(call: Call) -> Iterator[Block]:
    """What a result hands to the page, once per call."""
    for word, kind in (("bridge", BlockType.TOOL_BRIDGE), ("ui", BlockType.TOOL_UI)):
        if isinstance(content := (call.meta or {}).get(word), dict):
            yield Block(kind, content, call)
