"""Words, pictures and costs as ZenFlux shows them, in the stream and in stored messages alike."""

from typing import Any

import orjson

from gateway.model import BlockEnded, BlockKind, Content, ImagePart, TextPart, Usage, in_markdown, parts_of
from mappings.language import Table


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
    if head.startswith("data:") and head.endswith(";base64"):
        media_type = image.media_type or head.removeprefix("data:").removesuffix(";base64")
        return table.object("image", source="base64", media_type=media_type, data=data)
    return table.object("image", source="url", media_type=image.media_type, data=image.url)


def bill(table: Table, usage: Usage, *, llm_calls: int, model: str, latency: float) -> Any:
    """The total is what the documented example adds up to."""
    total = (usage.input_tokens + usage.output_tokens + usage.thinking_tokens + usage.cache_read_tokens
             + usage.cache_write_tokens)
    return table.object(
        "usage", usage=usage, total=total, latency=round(latency, 3), llm_calls=llm_calls, model=model,
    )
