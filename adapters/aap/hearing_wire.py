"""What AAP servers say, in AAP's own spelling: members nobody knows are passed over, what is optional may be absent."""

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Struct

from gateway.errors import BackendFailed
from gateway.field_errors import struct_words
from gateway.model import (
    AnyPart,
    Content,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolUsePart,
)

Id = Annotated[str, msgspec.Meta(min_length=1)]
PathId = Annotated[str, msgspec.Meta(pattern=r"^(?!\.{1,2}$)[^/%?#\s]+$")]
"""An id that is to be part of an address."""
Said = str | list[dict[str, Any]] | None
"""Content as it comes: words, or blocks."""


class Wire(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something a server said; its names are ours, its spelling is AAP's."""


# -- the stream -------------------------------------------------------------------------------------------------------

class DeltaFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    delta: str


class TextFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    text: str


class ThinkingFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    thinking: str


class CallFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    tool_call_id: Id
    name: Id
    input: dict[str, Any] | None = None


class ResultFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    tool_call_id: Id
    content: Said = None


class StopFrame(Wire, frozen=True, kw_only=True, rename="camel"):
    stop_reason: str


# -- bodies -----------------------------------------------------------------------------------------------------------

class MessageBody(Wire, frozen=True, kw_only=True, rename="camel"):
    role: str
    content: Said = None
    tool_call_id: str | None = None


class ExchangeBody(Wire, frozen=True, kw_only=True, rename="camel"):
    """A turn that was not streamed."""

    stop_reason: str
    messages: list[MessageBody] = []


class ToolBody(Wire, frozen=True, kw_only=True, rename="camel"):
    name: Id
    title: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class OptionBody(Wire, frozen=True, kw_only=True, rename="camel"):
    type: str
    name: Id
    title: str | None = None
    description: str | None = None
    default: str | None = None
    options: list[str] | None = None


class AgentBody(Wire, frozen=True, kw_only=True, rename="camel"):
    name: Id
    version: str | None = None
    title: str | None = None
    description: str | None = None
    tools: list[ToolBody] | None = None
    options: list[OptionBody] | None = None
    capabilities: dict[str, dict[str, Any] | None] | None = None


class MetaBody(Wire, frozen=True, kw_only=True, rename="camel"):
    version: int
    agents: list[AgentBody]


class ServerToolBody(Wire, frozen=True, kw_only=True, rename="camel"):
    name: str
    trust: bool | None = None


class ChosenBody(Wire, frozen=True, kw_only=True, rename="camel"):
    """What a session has chosen of its agent."""

    name: str
    tools: list[ServerToolBody] | None = None


class SessionBody(Wire, frozen=True, kw_only=True, rename="camel"):
    agent: ChosenBody
    tools: list[ToolBody] | None = None


class ListedBody(Wire, frozen=True, kw_only=True, rename="camel"):
    session_id: PathId
    agent: ChosenBody


class SessionsBody(Wire, frozen=True, kw_only=True, rename="camel"):
    sessions: list[ListedBody]
    next: str | None = None


class CreatedBody(Wire, frozen=True, kw_only=True, rename="camel"):
    session_id: PathId


class HistoriesBody(Wire, frozen=True, kw_only=True, rename="camel"):
    full: list[MessageBody] | None = None
    compacted: list[MessageBody] | None = None


class HistoryBody(Wire, frozen=True, kw_only=True, rename="camel"):
    history: HistoriesBody


# -- reading ----------------------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=Wire)


def read_as(kind: type[Kind], body: Any, what: str) -> Kind:
    """The body as what it should be; `what` names it where it cannot be that."""
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BackendFailed(f"{what} of the server cannot be understood: {struct_words(error)}") from None


def content_of(said: Said) -> Content:
    """Content in words of the house; a bare string stays one, blocks of a kind nobody knows are passed over."""
    if said is None or isinstance(said, str):
        return said or ""
    return tuple(part for block in said if (part := part_of(block)) is not None)


def part_of(block: dict[str, Any]) -> AnyPart | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "thinking", "thinking": str(text)}:
            return ThinkingPart(text=text)
        case {"type": "image", "url": str(url)}:
            return ImagePart(url=url, media_type=media_type_of(url))
        case {"type": "tool_use"}:
            call = read_as(CallFrame, block, "a tool_use block")
            return ToolUsePart(call=ToolCall(call_id=call.tool_call_id, name=call.name, input=call.input or {}))
    return None


def media_type_of(url: str) -> str | None:
    """What a `data:` address says it holds."""
    head = url.partition(",")[0].partition(";")[0]
    return head.removeprefix("data:") or None if url.startswith("data:") else None
