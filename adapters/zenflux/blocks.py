"""Words, pictures, costs and faults as ZenFlux shows them, in the stream and in stored messages alike."""

from mimetypes import guess_type
from typing import Any
from urllib.parse import urlsplit

import orjson

from gateway.model import (
    BlockEnded,
    BlockKind,
    Content,
    Fault,
    FaultCode,
    ImagePart,
    TextPart,
    Usage,
    in_markdown,
    parts_of,
)
from mappings.language import Table

ANY_IMAGE = "image/*"
"""The type of a picture that nobody has told, and that its address does not show either."""


def as_text(content: Any) -> str:
    """Words as they are; anything else as JSON."""
    return content if isinstance(content, str) else orjson.dumps(content).decode()


def in_words(content: Content) -> str:
    """What a tool gave back; its pictures for a reader of Markdown."""
    if isinstance(content, str):
        return content
    return "".join(
        part.text if isinstance(part, TextPart) else in_markdown(part)
        for part in parts_of(content) if isinstance(part, TextPart | ImagePart)
    )


def whole_of(event: BlockEnded) -> str:
    """All that a block says; nothing of a call that never became whole."""
    if event.kind is BlockKind.TOOL_USE:
        return "" if event.torn or event.call is None else orjson.dumps(event.call.input).decode()
    return event.text or ""


def picture(table: Table, image: ImagePart) -> Any:
    """The bytes themselves where the address has them."""
    head, _, data = image.url.partition(",")
    media_type = image.media_type or _type_of(image.url)
    if head.startswith("data:") and head.endswith(";base64"):
        return table.object("image", source="base64", media_type=media_type, data=data)
    return table.object("image", source="url", media_type=media_type, data=image.url)


def _type_of(url: str) -> str:
    """What an address says of the picture it has, or leads to."""
    if url.startswith("data:"):
        return url.removeprefix("data:").partition(",")[0].removesuffix(";base64") or ANY_IMAGE
    guessed = guess_type(_path_of(url), strict=False)[0] or ""
    return guessed if guessed.startswith("image/") else ANY_IMAGE


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def bill(table: Table, usage: Usage, *, llm_calls: int, model: str, latency: float) -> Any:
    """The total is what the documented example adds up to."""
    total = (usage.input_tokens + usage.output_tokens + usage.thinking_tokens + usage.cache_read_tokens
             + usage.cache_write_tokens)
    return table.object(
        "usage", usage=usage, total=total, latency=round(latency, 3), llm_calls=llm_calls, model=model,
    )


def code_of(fault: Fault) -> FaultCode:
    """What went wrong: an agent that broke by itself broke inside; only one that was not reached is away."""
    broke = fault.code is FaultCode.BACKEND and not fault.retryable
    return FaultCode.INTERNAL if broke else fault.code
