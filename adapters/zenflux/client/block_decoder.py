"""Decodes blocks by their index: several grow at once, and some are results of tools."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

import gateway.model as m
from adapters.zenflux.bodies import ImageBlock
from adapters.zenflux.wire import ANY_IMAGE
from gateway.client import StreamAssembler
from gateway.ports import BackendEvent

from .readers import Bindings, builtin_zenflux_table

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
    result: Bindings | None = None
    said: list[str] = field(default_factory=list)


class BlockDecoder:
    """The blocks of one run. A frame of a block that has ended, or is of an unknown kind, is ignored."""

    def __init__(self, assembler: StreamAssembler) -> None:
        self._assembler = assembler
        self._open: dict[int, StartedBlock] = {}
        self._over: set[int] = set()

    def start_words(self, given: Bindings, kind: m.BlockKind) -> list[BackendEvent]:
        said = self._start(given, StartedBlock(kind))
        return [*said, *self._say(given["index"], kind, given["begun"] or "", given["signature"])]

    def start_call(self, given: Bindings) -> list[BackendEvent]:
        index, call = given["index"], given["call"]
        said = self._start(given, StartedBlock(m.BlockKind.TOOL_USE, input=call["input"]))
        made = m.ToolCall(call_id=call["call_id"] or "", name=call["name"], origin=call["origin"])
        return [*said, *self._assembler.call(index, made)]

    def start_image(self, given: Bindings) -> list[BackendEvent]:
        said, image = self._start(given, StartedBlock()), read_image(given)
        return [*said, *self._assembler.image(image)] if image else said

    def start_result(self, given: Bindings) -> list[BackendEvent]:
        return self._start(given, StartedBlock(result=given))

    def start_unknown(self, given: Bindings) -> list[BackendEvent]:
        return self._start(given, StartedBlock())

    def _start(self, given: Bindings, block: StartedBlock) -> list[BackendEvent]:
        index = given["index"]
        said = self._end(index)
        self._over.discard(index)
        self._open[index] = block
        return said

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
        opened.said.append(words)
        return self._assembler.input_delta(index, words) if opened.kind else []

    def _say(self, index: int, kind: m.BlockKind, words: str, signature: str | None) -> list[BackendEvent]:
        said = self._assembler.text_delta(index, words, kind)
        return [*said, *self._assembler.sign(index, signature)] if signature else said

    # -- ends -----------------------------------------------------------------------------------------------------

    def stop(self, given: Bindings) -> list[BackendEvent]:
        index, signature = given["index"], given["signature"]
        opened = self._open.get(index)
        is_signed = signature and opened and opened.kind is m.BlockKind.THINKING
        return [*(self._assembler.sign(index, signature) if is_signed else ()), *self._end(index)]

    def finish(self) -> list[BackendEvent]:
        """Whatever is open has all it will have."""
        return [event for index in list(self._open) for event in self._end(index)]

    def _end(self, index: int) -> list[BackendEvent]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        self._over.add(index)
        if opened.result is not None:
            return self._returned(opened.result, "".join(opened.said))
        written = []
        if opened.input and not opened.said:
            written = self._assembler.input_delta(index, msgspec.json.encode(opened.input).decode())
        return [*written, *self._assembler.end(index)]

    def _returned(self, result: Bindings, more: str) -> list[BackendEvent]:
        content = _with_text(read_content(result["content"]), more)
        return self._assembler.returned(result["call_id"] or "", content, is_error=result["is_error"] is True)


def read_image(given: Bindings) -> m.ImagePart | None:
    where, told = given["image_data"], given["media_type"]
    media_type = told if told and told != ANY_IMAGE else None
    if not where:
        return None
    if given["image_source"] == BASE64:
        return m.ImagePart(url=f"data:{media_type or DEFAULT_MEDIA_TYPE};base64,{where}", media_type=media_type)
    return m.ImagePart(url=where, media_type=media_type)


def read_content(said: Any) -> m.Content:
    """The result of a tool: text, or a list of blocks."""
    if said is None or isinstance(said, str):
        return said or ""
    if isinstance(said, list) and said and all(isinstance(one, dict) for one in said):
        return tuple(_part(one) for one in said)
    return msgspec.json.encode(said).decode()


def _part(block: dict[str, Any]) -> m.AnyPart:
    """An image or a text; a block that is neither is shown as it is."""
    table = builtin_zenflux_table()
    image = read_image(table.read_object(ImageBlock.row, block)) if table.is_object(ImageBlock.row, block) else None
    if image is not None:
        return image
    words = block.get("text")
    return m.TextPart(text=words if isinstance(words, str) else msgspec.json.encode(block).decode())


def _with_text(content: m.Content, more: str) -> m.Content:
    if isinstance(content, str):
        return content + more
    return (*content, m.TextPart(text=more)) if more else content
