"""The chunks of a chat-completions response, and the assembly of tool calls from their pieces."""

from typing import Any

import msgspec
from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonObject, JsonValue

MAX_COUNT = 2 ** 53
"""The largest token count that is accepted."""


class FunctionPiece(Struct):
    name: str | None = None
    arguments: str | JsonObject | None = None


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class ChunkDelta(Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: JsonValue = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class TokenDetails(Struct):
    cached_tokens: JsonValue = None
    cache_write_tokens: JsonValue = None
    reasoning_tokens: JsonValue = None


class ChunkUsage(Struct):
    """Token counts of any type: a response must not fail because of its usage."""

    prompt_tokens: JsonValue = None
    completion_tokens: JsonValue = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class ChunkChoice(Struct):
    delta: ChunkDelta | None = None
    message: ChunkDelta | None = None
    finish_reason: str | None = None
    index: int | None = None
    usage: ChunkUsage | None = None
    error: Any = None


class ChatChunk(Struct):
    choices: list[ChunkChoice] | None = None
    usage: ChunkUsage | None = None
    error: Any = None


decode_chunk = msgspec.json.Decoder(ChatChunk).decode
EMPTY_CHUNK, NO_DETAILS = ChatChunk(), TokenDetails()


def text_only_delta(chunk: ChatChunk, block_key: str) -> str | None:
    """The text that a chunk adds to the open block, if it does nothing else."""
    choices = chunk.choices
    if choices is None or len(choices) != 1 or chunk.usage is not None:
        return None
    choice = choices[0]
    delta = choice.delta
    if delta is None or choice.index or choice.finish_reason is not None or delta.tool_calls or delta.refusal:
        return None
    thought = delta.reasoning_content or delta.reasoning
    words, other = (delta.content, thought) if block_key == "text" else (thought, delta.content)
    return None if other or type(words) is not str else words


def chunk_usage(cost: ChunkUsage) -> m.Usage:
    """The usage, with tokens that were read from or written to a cache apart from the other input tokens."""
    before, after = cost.prompt_tokens_details or NO_DETAILS, cost.completion_tokens_details or NO_DETAILS
    read, written = _count(before.cached_tokens), _count(before.cache_write_tokens)
    return m.Usage(
        input_tokens=max(0, _count(cost.prompt_tokens) - read - written), output_tokens=_count(cost.completion_tokens),
        cache_read_tokens=read, cache_write_tokens=written, thinking_tokens=_count(after.reasoning_tokens),
    )


def _count(value: Any) -> int:
    """The count as an integer; some services send fractions or strings. Anything else is 0."""
    try:
        return min(max(0, int(float(value))), MAX_COUNT)
    except (TypeError, ValueError, OverflowError):
        return 0


class PartialCall:
    """A call that is being assembled: its ids, and its input so far."""

    __slots__ = ("id", "input", "key", "name")

    def __init__(self, key: tuple[str, int], id: str | None, name: str) -> None:
        self.key, self.id, self.name = key, id, name
        self.input: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Whether its input is complete."""
        return _object("".join(self.input)) is not None

    def repeats(self, arguments: str) -> bool:
        """Whether a piece repeats the whole input after the pieces, as some services do."""
        if not (self.input and arguments.startswith("{") and arguments.endswith("}")):
            return False
        return (whole := _object("".join(self.input))) is not None and whole == _object(arguments)


class CallAssembler:
    """The calls of one response, in order."""

    def __init__(self) -> None:
        self._made: list[PartialCall] = []
        self._at: dict[int, PartialCall] = {}

    def take(self, piece: CallPiece) -> tuple[PartialCall, str, bool]:
        """The call that a piece belongs to, what the piece adds to its input, and whether the call is new."""
        function = piece.function or FunctionPiece()
        name, arguments = function.name or "", function.arguments or ""
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        call, is_new = self._known(piece), False
        if call is None or _begins_call(call, piece, name, arguments):
            call, is_new = self._begin(piece, name), True
        elif call.repeats(arguments):
            return call, "", False
        call.input.append(arguments)
        return call, arguments, is_new

    def _known(self, piece: CallPiece) -> PartialCall | None:
        if piece.index is not None:
            return self._at.get(piece.index)
        last = self._made[-1] if self._made else None
        return next((call for call in self._made if piece.id and call.id == piece.id), last)

    def _begin(self, piece: CallPiece, name: str) -> PartialCall:
        call = PartialCall(("call", len(self._made)), piece.id, name)
        self._made.append(call)
        if piece.index is not None:
            self._at[piece.index] = call
        return call


def _begins_call(call: PartialCall, piece: CallPiece, name: str, arguments: str) -> bool:
    """Whether a piece belongs to another call than the one that its index, or the lack of one, points to.

    Some servers give every call the index 0, some give none, some repeat ids and names with every piece, some
    give every piece an id of its own, some give two calls one id, and some give a name in pieces, before the input.
    No call begins without a name.
    """
    if not name or not call.name:
        return False
    if piece.id and call.id and piece.id != call.id:
        return True
    if name != call.name:
        return call.is_whole or not (piece.id and call.id)
    if piece.index is None and not piece.id:
        return True
    return bool(arguments) and call.is_whole and not (piece.id and call.repeats(arguments))


def _object(text: str) -> JsonObject | None:
    """The JSON object in a text; None if there is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
