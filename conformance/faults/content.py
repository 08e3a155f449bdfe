"""The content of a message, which is a string or a list of blocks: its blocks, its text, its images."""

from typing import Any


def as_blocks(content: Any) -> list[dict[str, Any]]:
    """Content as blocks."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def text_of(content: Any) -> str:
    """The text in any content."""
    return "".join(block.get("text", "") for block in as_blocks(content))


def images_in(messages: list[dict[str, Any]]) -> list[str]:
    """The addresses of all images in the messages."""
    blocks = [block for message in messages for block in as_blocks(message["content"])]
    return [block["url"] for block in blocks if block["type"] == "image"]
