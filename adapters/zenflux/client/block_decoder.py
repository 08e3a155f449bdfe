"""Decodes blocks by their index: several grow at once, and some are results of tools."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

import gateway.model as m
from adapters.zenflux.bodies import ImageBlock
from adapters.zenflux.wire import ANY_IMAGE
from gateway.client import StreamAssembler, decodes
from gateway.ports import BackendEvent
from mappings.language import Bindings

from .readers import ZENFLUX

WORDS = (m.BlockKind.TEXT, m.BlockKind.THINKING)
BASE64 = "base64"
DEFAULT_MEDIA_TYPE = "image/png"


@dataclass
class StartedBlock:
    """A block that has started: its kind, and what the frame that started it says.

    A block of no kind is the result of a tool, if it names a call; otherwise it is ignored.
    """

    kind: m.BlockKind | None = None
    input: dict[str, Any] | None = None
    result: tuple[str, Any, bool] | None = None
    """The id of the call, what it returned, and whether that is an error."""
    texts: list[str] = field(default_factory=list)


class BlockDecoder:
    """The blocks of one run. A frame of a block that has ended, or is of an unknown kind, is ignored."""

    def __init__(self, assembler: StreamAssembler) -> None:
        self._assembler = assembler
        self._open: dict[int, StartedBlock] = {}
        self._over: set[int] = set()

    @decodes("block.started.text")
    def start_text(
        self, index: int, begun: str | None, signature: str | None, kind: m.BlockKind = m.BlockKind.TEXT,
    ) -> list[BackendEvent]:
        return [*self._start(index, StartedBlock(kind)), *self._say(index, kind, begun or "", signature)]

    @decodes("block.started.thinking")
    def start_thinking(self, index: int, begun: str | None, signature: str | None) -> list[BackendEvent]:
        return self.start_text(index, begun, signature, m.BlockKind.THINKING)

    @decodes("block.started.tool_use")
    def start_call(self, index: int, call: Bindings) -> list[BackendEvent]:
        events = self._start(index, StartedBlock(m.BlockKind.TOOL_USE, input=call["input"]))
        made = m.ToolCall(call_id=call["call_id"] or "", name=call["name"], origin=call["origin"])
        return [*events, *self._assembler.call(index, made)]

    @decodes("picture")
    def start_image(
        self, index: int, image_source: str | None, media_type: str | None, image_data: str | None,
    ) -> list[BackendEvent]:
        events, image = self._start(index, StartedBlock()), read_image(image_source, media_type, image_data)
        return [*events, *self._assembler.image(image)] if image else events

    @decodes("block.started.other")
    def start_unknown(self, index: int, block_type: str) -> list[BackendEvent]:
        return self._start(index, StartedBlock())

    def start_result(self, index: int, call_id: str, content: object, *, is_error: bool) -> list[BackendEvent]:
        return self._start(index, StartedBlock(result=(call_id, content, is_error)))

    def _start(self, index: int, block: StartedBlock) -> list[BackendEvent]:
        events = self._end(index)
        self._over.discard(index)
        self._open[index] = block
        return events

    def is_new(self, index: int) -> bool:
        """Whether the frame is of a block that was not started; the published front end takes it for text."""
        return index not in self._open and index not in self._over

    def delta(self, index: int, words: str, signature: str | None = None) -> list[BackendEvent]:
        opened = self._open.get(index)
        if opened is None:
            if index in self._over:
                return []
            opened = self._open[index] = StartedBlock(m.BlockKind.TEXT)
        if opened.kind in WORDS:
            return self._say(index, opened.kind, words, signature)
        opened.texts.append(words)
        return self._assembler.input_delta(index, words) if opened.kind else []

    def _say(self, index: int, kind: m.BlockKind, words: str, signature: str | None) -> list[BackendEvent]:
        events = self._assembler.text_delta(index, words, kind)
        return [*events, *self._assembler.sign(index, signature)] if signature else events

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop(self, index: int, signature: str | None) -> list[BackendEvent]:
        opened = self._open.get(index)
        is_thinking = opened is not None and opened.kind is m.BlockKind.THINKING
        return [*(self._assembler.sign(index, signature) if signature and is_thinking else ()), *self._end(index)]

    def finish(self) -> list[BackendEvent]:
        """Whatever is open has all it will have."""
        return [event for index in list(self._open) for event in self._end(index)]

    def _end(self, index: int) -> list[BackendEvent]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        self._over.add(index)
        if opened.result is not None:
            call_id, value, is_error = opened.result
            content = _with_text(read_content(value), "".join(opened.texts))
            return self._assembler.returned(call_id, content, is_error=is_error)
        written = []
        if opened.input and not opened.texts:
            written = self._assembler.input_delta(index, msgspec.json.encode(opened.input).decode())
        return [*written, *self._assembler.end(index)]


def read_image(image_source: str | None, media_type: str | None, image_data: str | None) -> m.ImagePart | None:
    media_type = media_type if media_type and media_type != ANY_IMAGE else None
    if not image_data:
        return None
    if image_source == BASE64:
        return m.ImagePart(url=f"data:{media_type or DEFAULT_MEDIA_TYPE};base64,{image_data}", media_type=media_type)
    return m.ImagePart(url=image_data, media_type=media_type)


def read_content(content: object) -> m.Content:
    """The result of a tool: text, or a list of blocks."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and content and all(isinstance(one, dict) for one in content):
        return tuple(_part(one) for one in content)
    return msgspec.json.encode(content).decode()


def _part(block: dict[str, Any]) -> m.AnyPart:
    """An image or a text; a block that is neither is shown as it is."""
    is_image = ZENFLUX.table.is_object(ImageBlock.row, block)
    image = read_image(**ZENFLUX.table.read_object(ImageBlock.row, block)) if is_image else None
    if image is not None:
        return image
    words = block.get("text")
    return m.TextPart(text=words if isinstance(words, str) else msgspec.json.encode(block).decode())


def _with_text(content: m.Content, more: str) -> m.Content:
    if isinstance(content, str):
        return content + more
    return (*content, m.TextPart(text=more)) if more else content
