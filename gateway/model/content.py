"""What messages are made of: parts, tool calls, tool specifications, usage, and a session's settings."""

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from gateway.json_values import JsonObject

from .enums import FaultCode, Permission, Role, ToolOrigin

QUESTION_TOOL = "AskUserQuestion"
"""The tool whose calls ask people."""
HOW_TO_ANSWER = (
    "A person must answer these questions. Return the answer to a single question as plain text. Return the answers to "
    "several questions as a JSON object that has an answer under each question's header (or its text), or as a JSON "
    "array of answers in the order of the questions."
)
"""The description of a question that is shown as the call of a tool."""


class ToolCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of one tool; `input` is parsed, and empty while the call is still being written."""

    call_id: str
    name: str
    input: dict[str, Any] = {}
    origin: ToolOrigin = ToolOrigin.BUILTIN
    permission: Permission = Permission.ALLOW
    display_name: str | None = None
    server: str | None = None

    @property
    def how_to_answer(self) -> str | None:
        """What the reader of a call must know that is itself a question to people; None for any other call."""
        is_question = self.name == QUESTION_TOOL and self.origin is not ToolOrigin.CLIENT
        return HOW_TO_ANSWER if is_question and isinstance(self.input.get("questions"), list) else None


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """One piece of a message."""


class TextPart(Part, frozen=True, kw_only=True, tag="text"):
    text: str


class ThinkingPart(Part, frozen=True, kw_only=True, tag="thinking"):
    text: str
    signature: str | None = None


class ToolUsePart(Part, frozen=True, kw_only=True, tag="tool_use"):
    call: ToolCall


class ImagePart(Part, frozen=True, kw_only=True, tag="image"):
    """A picture by address: `https:` or a `data:` URI."""

    url: str
    media_type: str | None = None


class FilePart(Part, frozen=True, kw_only=True, tag="file"):
    """A file by address, by id in the file store, or both."""

    name: str
    url: str | None = None
    file_id: str | None = None
    media_type: str | None = None
    size: int | None = None


class DataPart(Part, frozen=True, kw_only=True, tag="data"):
    """A typed piece that is neither words nor pictures: a card, a plan, a change of mode."""

    type: str
    content: Any = None
    call_id: str | None = None


AnyPart = TextPart | ThinkingPart | ToolUsePart | ImagePart | FilePart | DataPart
Content = str | tuple[AnyPart, ...]
"""A client's own spelling is kept: a bare string stays a bare string."""


def parts_of(content: Content) -> tuple[AnyPart, ...]:
    """The content as parts, a bare string being one text part."""
    return (TextPart(text=content),) if isinstance(content, str) else content


def text_of(content: Content) -> str:
    """All the words of the content, thinking left out."""
    return content if isinstance(content, str) else "".join(p.text for p in content if isinstance(p, TextPart))


def image_markdown(image: ImagePart) -> str:
    """A picture for readers of words."""
    return f"![image]({image.url})"


class SeedMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message from an earlier conversation, which a session starts with."""

    role: Role
    content: Content
    call_id: str | None = None


class ToolSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool as it is declared: by an agent, or by a client for its own tools."""

    name: str
    description: str = ""
    parameters: JsonObject = {}
    title: str | None = None


SKILL_FILE = "SKILL.md"
"""The file of a skill that has its text."""


class SkillRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A skill that a session has: its name and description for the model, and the stored skill that has the files."""

    name: str
    description: str
    skill_id: str
    version: int = 1


class SkillFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a skill; `text` is None if it is not text. `files` are the paths of all files of the skill."""

    name: str
    path: str
    size: int
    text: str | None = None
    files: tuple[str, ...] = ()


class MemoryRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory of a user that fits a message: its number, its text, and the skill that it is about."""

    number: int
    content: str
    skill: str | None = None

    def as_annotation(self) -> JsonObject:
        """The memory as an annotation of a message names it."""
        return {"id": self.number, "content": self.content, "skill_name": self.skill}


def read_memory_refs(annotation: object) -> tuple[MemoryRef, ...]:
    """The memories that `as_annotation` wrote; what others wrote is left out."""
    found = annotation if isinstance(annotation, list) else []
    return tuple(
        MemoryRef(number=one["id"], content=one["content"], skill=one.get("skill_name")) for one in found
        if isinstance(one, dict) and isinstance(one.get("id"), int) and isinstance(one.get("content"), str)
    )


class Settings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a session has chosen of its agent; secrets stand apart so that nothing prints them by accident.

    `tools` is None if the client sent no choice of tools: the tools of the agent are then enabled and allowed.
    `agent_id` and `agent_version` are those of the made agent that the settings come from, if they come from one.
    `mcp_headers` has, by the URL of an MCP server, the header that it gets, as `Name: value`; it is as secret as the
    secrets. `skills` is None if the client sent no choice of skills: a new session then gets those of its agent.
    `memory` is whether the memories of the user are used; None means that they are not. `memory_user` narrows them to
    those that name this user; the empty text stands for those that name nobody.
    """

    tools: dict[str, Permission] | None = None
    client_tools: tuple[ToolSpec, ...] = ()
    options: dict[str, str] = {}
    secrets: dict[str, str] = {}
    system: str | None = None
    model: str | None = None
    mcp_servers: tuple[JsonObject, ...] = ()
    mcp_headers: dict[str, str] = {}
    agent_id: str | None = None
    agent_version: int | None = None
    skills: tuple[SkillRef, ...] | None = None
    memory: bool | None = None
    memory_user: str | None = None

    def mcp_headers_of(self, url: str) -> dict[str, str]:
        """The headers for the MCP server at this URL, and for no other."""
        name, separator, value = self.mcp_headers.get(url, "").partition(": ")
        return {name: value} if separator else {}


def base64_of(url: str) -> tuple[str, str] | None:
    """The media type and the content of a `data:` address in base64; None for any other address."""
    head, comma, content = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head.removeprefix("data:").removesuffix(";base64").partition(";")[0], content


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens spent."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    thinking_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            thinking_tokens=self.thinking_tokens + other.thinking_tokens,
        )

    def beyond(self, other: "Usage") -> "Usage":
        """What this has more than the other, count by count."""
        return Usage(**{name: max(0, getattr(self, name) - getattr(other, name)) for name in self.__struct_fields__})

    def at_least(self, other: "Usage") -> "Usage":
        """The larger of the two, count by count."""
        return Usage(**{name: max(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__})


class Fault(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, in words that a client may see."""

    code: FaultCode
    message: str
    retryable: bool = False
    details: JsonObject | None = None


def decode_data_url(url: str) -> tuple[str, bytes | None]:
    """The media type and the bytes of a `data:` address; no bytes where it is none."""
    if not url.startswith("data:"):
        return "", None
    head, comma, body = url[5:].partition(",")
    kind, *options = head.split(";")
    if not comma:
        return kind, None
    try:
        data = base64.b64decode(body, validate=True) if "base64" in options else unquote_to_bytes(body)
    except binascii.Error:
        return kind, None
    return kind or "text/plain", data
