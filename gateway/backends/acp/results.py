"""What came of a tool call, as the agent tells it: words, pictures, changes to files, or raw output."""

from difflib import unified_diff
from typing import Any

import msgspec

from gateway.model import AnyPart, Content, ImagePart, TextPart

LONGEST_DIFF = 200_000
"""Texts of more characters than this are not compared line by line."""


def result_of(content: Any, raw_output: Any) -> Content:
    """The content of a call where there is any, its raw output otherwise."""
    parts = [part for piece in content or () if (part := _part(piece)) is not None] if isinstance(content, list) else []
    if any(isinstance(part, ImagePart) for part in parts):
        return tuple(parts)
    words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return words or _in_words(raw_output)


def block_text(block: Any) -> str | None:
    """The words of a content block; None where it has none."""
    if not isinstance(block, dict):
        return None
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "resource_link":
            return f"[{block.get('title') or block.get('name') or 'link'}]({block.get('uri')})"
        case "resource" if isinstance(resource := block.get("resource"), dict) and "text" in resource:
            return str(resource["text"])
    return None


def block_image(block: Any) -> ImagePart | None:
    """The picture of a content block, if it is one."""
    if not isinstance(block, dict) or block.get("type") != "image":
        return None
    media_type = str(block.get("mimeType") or "image/png")
    if data := block.get("data"):
        return ImagePart(url=f"data:{media_type};base64,{data}", media_type=media_type)
    return ImagePart(url=str(block["uri"]), media_type=media_type) if block.get("uri") else None


def _part(piece: Any) -> AnyPart | None:
    if not isinstance(piece, dict):
        return None
    match piece.get("type"):
        case "content":
            image, text = block_image(piece.get("content")), block_text(piece.get("content"))
            return image or (None if text is None else TextPart(text=text))
        case "diff":
            return TextPart(text=_diff(str(piece.get("path")), piece.get("oldText") or "", piece.get("newText") or ""))
    return None


def _diff(path: str, old: str, new: str) -> str:
    if len(old) + len(new) > LONGEST_DIFF:
        return f"{path} was changed"
    lines = unified_diff(old.splitlines(), new.splitlines(), path, path, lineterm="")
    return "\n".join(lines) or f"{path} was not changed"


def _in_words(raw: Any) -> str:
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()
