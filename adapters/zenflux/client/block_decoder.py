"""Decodes blocks by their index: several grow at once, and some are results of tools."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

import gateway.model as m
from adapters.zenflux.wire import ANY_IMAGE
from gateway.client import StreamAssembler
from gateway.errors import BackendFailed
from gateway.ports import BackendEvent

from .readers import index_of, members, origin_of, text

RESULT = "tool_result"
WORDS = {"text": m.BlockKind.TEXT, "thinking": m.BlockKind.THINKING}
FRAGMENTS = ("text", "thinking", "partial_json")


@dataclass
class StartedBlock:
    """A block that has started: its kind, and its content at the start."""

    type: str
    block: dict[str, Any]
    said: list[str] = field(default_factory=list)


def check_frame(kind: str, data: dict[str, Any]) -> None:
    """Raise `BackendFailed` if a frame of content cannot be read, before it has any effect."""
    if kind in ("content_start", "content_delta", "content_stop"):
        index_of(data)
    if kind == "content_delta":
        _fragment(data.get("delta"))
    if kind == "content_start":
        block = members(data.get("content_block"))
        if not text(block.get("type")):
            raise BackendFailed("the server sent a piece of content without its type")
        if origin_of(text(block.get("type"))) and not text(block.get("name")):
            raise BackendFailed("the server sent a call of a tool without the tool's name")


class BlockDecoder:
    """The blocks of one run, whose frames are checked before they come here.

    A frame of a block that has ended, or is of an unknown kind, is ignored.
    """

    def __init__(self, scribe: StreamAssembler) -> None:
        self._assembler = scribe
        self._open: dict[int, StartedBlock] = {}
        self._over: set[int] = set()

    def start(self, data: dict[str, Any]) -> list[BackendEvent]:
        index, block = index_of(data), members(data.get("content_block"))
        said = self._end(index)
        self._over.discard(index)
        opened = self._open[index] = StartedBlock(text(block.get("type")), block)
        return [*said, *self._begin(index, opened)]

    def _begin(self, index: int, opened: StartedBlock) -> list[BackendEvent]:
        block = opened.block
        if opened.type in WORDS:
            said = self._words(index, opened.type, text(block.get(opened.type)))
            signature = text(block.get("signature"))
            return [*said, *self._assembler.sign(index, signature)] if signature else said
        if opened.type == "image":
            image = read_image(block)
            return self._assembler.image(image) if image else []
        origin = origin_of(opened.type)
        if origin is None:
            return []
        return self._assembler.call(index, m.ToolCall(call_id=text(block.get("id")), name=block["name"], origin=origin))

    def is_new(self, data: dict[str, Any]) -> bool:
        """Whether the frame is of a block that was not started; the published front end takes it for text."""
        index = index_of(data)
        return index not in self._open and index not in self._over

    def delta(self, data: dict[str, Any]) -> list[BackendEvent]:
        index, fragment = index_of(data), data.get("delta")
        signature = text(fragment.get("signature")) if isinstance(fragment, dict) else ""
        words = _fragment(fragment)
        if index in self._over:
            return []
        opened = self._open.setdefault(index, StartedBlock("text", {}))
        if opened.type in WORDS:
            said = self._words(index, opened.type, words)
            return [*said, *self._assembler.sign(index, signature)] if signature else said
        opened.said.append(words)
        return self._assembler.input_delta(index, words) if origin_of(opened.type) else []

    def _words(self, index: int, kind: str, words: str) -> list[BackendEvent]:
        return self._assembler.text_delta(index, words, WORDS[kind])

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop(self, data: dict[str, Any]) -> list[BackendEvent]:
        index = index_of(data)
        opened, signature = self._open.get(index), text(data.get("signature"))
        signed = self._assembler.sign(index, signature) if opened and opened.type == "thinking" and signature else []
        return [*signed, *self._end(index)]

    def finish(self) -> list[BackendEvent]:
        """Whatever is open has all it will have."""
        return [event for index in list(self._open) for event in self._end(index)]

    def _end(self, index: int) -> list[BackendEvent]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        self._over.add(index)
        if opened.type == RESULT:
            return self._returned(opened)
        given = opened.block.get("input")
        written = []
        if origin_of(opened.type) and not opened.said and isinstance(given, dict) and given:
            written = self._assembler.input_delta(index, msgspec.json.encode(given).decode())
        return [*written, *self._assembler.end(index)]

    def _returned(self, opened: StartedBlock) -> list[BackendEvent]:
        block = opened.block
        content = _with_text(read_content(block.get("content")), "".join(opened.said))
        return self._assembler.returned(
            text(block.get("tool_use_id")), content, is_error=block.get("is_error") is True,
        )


def _fragment(delta: Any) -> str:
    """A string, as documented; or an object that names its kind, as older servers have it."""
    if isinstance(delta, dict):
        return next((said for key in FRAGMENTS if (said := text(delta.get(key)))), "")
    if not isinstance(delta, str):
        raise BackendFailed("the server sent a delta that is no text")
    return delta


def read_image(block: dict[str, Any]) -> m.ImagePart | None:
    source = members(block.get("source"))
    where, told = text(source.get("data")) or text(source.get("url")), text(source.get("media_type"))
    media_type = told if told and told != ANY_IMAGE else None
    if not where:
        return None
    if source.get("type") == "base64":
        return m.ImagePart(url=f"data:{media_type or 'image/png'};base64,{where}", media_type=media_type)
    return m.ImagePart(url=where, media_type=media_type)


def read_content(said: Any) -> m.Content:
    """The result of a tool: text, or a list of blocks."""
    if said is None or isinstance(said, str):
        return said or ""
    if isinstance(said, list) and said and all(isinstance(one, dict) for one in said):
        return tuple(_part(one) for one in said)
    return msgspec.json.encode(said).decode()


def _part(block: dict[str, Any]) -> m.AnyPart:
    image = read_image(block) if block.get("type") == "image" else None
    if image is not None:
        return image
    words = block.get("text")
    return m.TextPart(text=words if isinstance(words, str) else msgspec.json.encode(block).decode())


def _with_text(content: m.Content, more: str) -> m.Content:
    if isinstance(content, str):
        return content + more
    return (*content, m.TextPart(text=more)) if more else content
