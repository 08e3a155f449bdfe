"""The messages of the Agent Client Protocol as structs, and the lines that they are sent in."""

from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec import Raw, Struct

from gateway.json_values import JsonObject, JsonValue

PROTOCOL_VERSION = 1
NOT_FOUND, INVALID, INTERNAL = -32601, -32602, -32603
NO_JSON = Raw()

RpcId = int | str


class RpcError(Struct, frozen=True):
    """Error codes of JSON-RPC."""

    code: int = INTERNAL
    message: str = ""


class RpcMessage(Struct, frozen=True):
    """One line: a request (method and id), a notification (method), or a response (id)."""

    id: RpcId | None = None
    method: str | None = None
    params: Raw = NO_JSON
    result: Raw = NO_JSON
    error: RpcError | None = None


class _CamelStruct(Struct, frozen=True, kw_only=True, rename="camel"):
    """A struct in the protocol's spelling; optional fields may be null."""


class SessionUpdate(_CamelStruct, frozen=True, kw_only=True):
    """A session update; its kind decides which fields it has."""

    session_update: str = ""
    content: JsonValue = None
    message_id: str | None = None
    tool_call_id: str = ""
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    raw_input: JsonValue = None
    raw_output: JsonValue = None
    entries: list[JsonObject] | None = None


class SessionUpdateParams(_CamelStruct, frozen=True, kw_only=True):
    """The parameters of `session/update`."""

    session_id: str
    update: SessionUpdate


class PermissionOption(_CamelStruct, frozen=True, kw_only=True):
    """One option of a request for permission."""

    option_id: str
    name: str = ""
    kind: str = ""


class PermissionParams(_CamelStruct, frozen=True, kw_only=True):
    """The parameters of `session/request_permission`."""

    session_id: str
    tool_call: SessionUpdate
    options: tuple[PermissionOption, ...] = ()


class ReadFileParams(_CamelStruct, frozen=True, kw_only=True):
    """The parameters of `fs/read_text_file`."""

    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class WriteFileParams(_CamelStruct, frozen=True, kw_only=True):
    """The parameters of `fs/write_text_file`."""

    session_id: str
    path: str
    content: str


class PromptCapabilities(_CamelStruct, frozen=True, kw_only=True):
    image: bool | None = None


class McpCapabilities(_CamelStruct, frozen=True, kw_only=True):
    http: bool | None = None
    sse: bool | None = None


class SessionCapabilities(_CamelStruct, frozen=True, kw_only=True):
    close: JsonValue = None


class AcpCapabilities(_CamelStruct, frozen=True, kw_only=True):
    load_session: bool | None = None
    prompt_capabilities: PromptCapabilities | None = None
    mcp_capabilities: McpCapabilities | None = None
    session_capabilities: SessionCapabilities | None = None


class InitializeResult(_CamelStruct, frozen=True, kw_only=True):
    """The result of `initialize`."""

    protocol_version: int = 0
    agent_capabilities: AcpCapabilities | None = None

    @property
    def can_load(self) -> bool:
        return bool(self.agent_capabilities and self.agent_capabilities.load_session)

    @property
    def can_close(self) -> bool:
        """A capability is declared by any object, even an empty one."""
        declared = self.agent_capabilities and self.agent_capabilities.session_capabilities
        return isinstance(declared and declared.close, dict)

    @property
    def takes_images(self) -> bool:
        declared = self.agent_capabilities and self.agent_capabilities.prompt_capabilities
        return bool(declared and declared.image)

    @property
    def mcp_transports(self) -> frozenset[str]:
        declared = self.agent_capabilities and self.agent_capabilities.mcp_capabilities
        return frozenset(name for name in ("http", "sse") if declared and getattr(declared, name))


class ConfigChoice(_CamelStruct, frozen=True, kw_only=True):
    """A value of a configuration option, or a group of values."""

    value: str = ""
    options: "tuple[ConfigChoice, ...]" = ()


class ConfigOption(_CamelStruct, frozen=True, kw_only=True):
    """Something that a session of the agent can be set to, one of several values."""

    id: str
    current_value: str
    options: tuple[ConfigChoice, ...]
    category: JsonValue = None

    def offers(self, value: str) -> bool:
        return any(value in (choice.value, *(inner.value for inner in choice.options)) for choice in self.options)


class ConfigResult(_CamelStruct, frozen=True, kw_only=True):
    """The part of the result of `session/new`, `session/load` and `session/set_config_option` that has the options."""

    config_options: JsonValue = None

    @property
    def choices(self) -> tuple[ConfigOption, ...]:
        """The options that have values to choose from; those that cannot be read are left out."""
        offered = self.config_options if isinstance(self.config_options, list) else []
        found = []
        for one in offered:
            with suppress(msgspec.ValidationError):
                found.append(msgspec.convert(one, ConfigOption))
        return tuple(found)


class NewSessionResult(_CamelStruct, frozen=True, kw_only=True):
    """The result of `session/new`."""

    session_id: str


class AcpUsage(_CamelStruct, frozen=True, kw_only=True):
    input_tokens: int = 0
    output_tokens: int = 0
    thought_tokens: int | None = None
    cached_read_tokens: int | None = None
    cached_write_tokens: int | None = None


class PromptResult(_CamelStruct, frozen=True, kw_only=True):
    """The result of `session/prompt`, at the end of the turn."""

    stop_reason: str = "end_turn"
    usage: AcpUsage | None = None


_decode = msgspec.json.Decoder(RpcMessage).decode
_encode = msgspec.json.Encoder().encode


def decode_line(line: bytes) -> RpcMessage | None:
    """The message of a line; None if the line is no message."""
    try:
        message = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return message if message.method is not None or message.id is not None else None


def encode_line(**message: object) -> bytes:
    return _encode({"jsonrpc": "2.0", **message}) + b"\n"


class LineSplitter:
    """Splits bytes into lines, wherever the bytes were cut; empty lines are ignored."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Raises `OverflowError` if a line is too long."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            self._hold(piece)
            line, self._pieces, self._size = b"".join(self._pieces).strip(), [], 0
            if line:
                yield line
        self._hold(rest)

    def _hold(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._longest:
            raise OverflowError(f"a line of more than {self._longest} bytes")
        self._pieces.append(piece)
