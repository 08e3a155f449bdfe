"""An answer of a chat-completions service, chunk by chunk; lenient with what local servers leave out."""

from collections.abc import Sequence
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from gateway.backends.loop_faults import fault_of
from gateway.backends.loop_tools import Toolbox
from gateway.errors import BackendFailed
from gateway.model import BlockKind, StopReason, Usage
from gateway.ports import Said
from gateway.speech import Scribe
from gateway.upstream import SseEvent, Upstream, mended

log = structlog.get_logger("dragoman.model")

DONE = "[DONE]"
STOPS = {
    "stop": StopReason.END_TURN, "eos": StopReason.END_TURN, "end_turn": StopReason.END_TURN,
    "tool_calls": StopReason.TOOL_USE, "function_call": StopReason.TOOL_USE,
    "length": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL,
}


# -- the shape of a chunk ---------------------------------------------------------------------------------------------

class Function(Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: Function | None = None


class Delta(Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Details(Struct):
    cached_tokens: Any = None
    cache_write_tokens: Any = None
    reasoning_tokens: Any = None


class Cost(Struct):
    """Numbers in any shape: no answer is given up for what it has cost."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class Choice(Struct):
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None
    index: int | None = None
    usage: Cost | None = None
    error: Any = None


class Chunk(Struct):
    choices: list[Choice] | None = None
    usage: Cost | None = None
    error: Any = None


_decode = msgspec.json.Decoder(Chunk).decode
NOTHING, NO_DETAILS = Chunk(), Details()
MOST = 2 ** 53
"""More than anybody counts to."""
BROKEN = "error"
"""The finish reason of an answer that broke, at services that tell no more of it."""


class _Open:
    """A call in the making: what it is known by, upstream and to the scribe, and its input so far."""

    __slots__ = ("id", "input", "key", "name")

    def __init__(self, key: tuple[str, int], id: str | None, name: str) -> None:
        self.key, self.id, self.name = key, id, name
        self.input: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Whether nothing can be added to its input."""
        return _object("".join(self.input)) is not None

    def repeats(self, arguments: str) -> bool:
        """Whether a piece says once more, and as a whole, what was said in pieces: some services end so."""
        if not (self.input and arguments.startswith("{") and arguments.endswith("}")):
            return False
        return (whole := _object("".join(self.input))) is not None and whole == _object(arguments)


class ChatReading:
    """See `gateway.backends.loop_service.Reading`."""

    def __init__(self, scribe: Scribe, toolbox: Toolbox, call_ids: set[str], upstream: Upstream) -> None:
        self.stop, self.usage = StopReason.END_TURN, Usage()
        self.called = self.paused = self.finished = self.over = False
        self._scribe, self._toolbox, self._call_ids, self._upstream = scribe, toolbox, call_ids, upstream
        self._voice = ""
        self._begun = self._refused = False
        self._made: list[_Open] = []
        self._at: dict[int, _Open] = {}

    def hear(self, events: Sequence[SseEvent], said: list[Said]) -> None:
        words = list[str]()
        try:
            for event in events:
                if self.finished:
                    self._hear_after(event)
                    continue
                if event.data == DONE:
                    self._end()
                    continue
                chunk = self._chunk(event.data)
                if self._voice and (more := _only_words(chunk, self._voice)) is not None:
                    words.append(more)  # nine chunks of ten
                    continue
                if words:
                    said += self._scribe.more(self._voice, words)
                    words = []
                said += self._take(chunk)
        finally:
            if words:
                said += self._scribe.more(self._voice, words)

    def _end(self) -> None:
        if not self._begun:
            raise BackendFailed(f"{self._upstream.name} ended its answer before it had begun it")
        self.finished = self.over = True

    def _take(self, chunk: Chunk) -> Sequence[Said]:
        if chunk.usage is not None:
            self.usage = _usage(chunk.usage)
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        if choice.index:
            return ()
        self._begun = True
        delta = choice.delta or choice.message
        said = self._delta(delta) if delta is not None else ()
        if choice.finish_reason:
            self._finish(choice.finish_reason, choice)
        return said

    def _hear_after(self, event: SseEvent) -> None:
        if event.data == DONE:
            self.over = True
        elif not self.over and (cost := self._chunk(event.data).usage) is not None:
            self.usage = _usage(cost)

    def _chunk(self, data: str) -> Chunk:
        try:
            chunk = _decode(data)
        except (msgspec.DecodeError, RecursionError):
            if not data.strip():
                return NOTHING  # an event without words, which some send to keep the line open
            if (whole := mended(data)) != data:
                return self._chunk(whole)
            raise BackendFailed(f"{self._upstream.name} sent a chunk that cannot be read") from None
        if chunk.error:
            raise fault_of(chunk.error, self._upstream)
        return chunk

    def _finish(self, reason: str, choice: Choice) -> None:
        if reason == BROKEN or choice.error:
            raise fault_of(choice.error, self._upstream)
        if choice.usage is not None:
            self.usage = _usage(choice.usage)
        self.finished = True
        stop = STOPS.get(reason)
        if stop is None:
            log.warning("unknown finish reason", upstream=self._upstream.name, reason=reason[:100])
        self.stop = StopReason.REFUSAL if self._refused else stop or StopReason.END_TURN

    # -- pieces ---------------------------------------------------------------------------------------------------

    def _delta(self, delta: Delta) -> Sequence[Said]:
        content, thought = delta.content, delta.reasoning_content or delta.reasoning
        said: list[Said] = []
        if isinstance(thought, str) and thought:
            said += self._words("thinking", thought, BlockKind.THINKING)
        if content:
            said += self._content(content)
        if delta.refusal:
            self._refused = True
            said += self._words("text", delta.refusal)
        for piece in delta.tool_calls or ():
            said += self._call(piece)
        return said

    def _content(self, content: str | list[Any]) -> list[Said]:
        """Words; or pieces of them, as some services have it that think between their words."""
        if isinstance(content, str):
            return self._words("text", content)
        said: list[Said] = []
        for piece in content:
            if isinstance(piece, dict):
                said += self._piece(piece)
        return said

    def _piece(self, piece: dict[str, Any]) -> list[Said]:
        if isinstance(text := piece.get("text"), str):
            return self._words("text", text)
        thoughts = piece.get("thinking")
        if isinstance(thoughts, str):
            return self._words("thinking", thoughts, BlockKind.THINKING)
        return [event for thought in (thoughts if isinstance(thoughts, list) else ()) if isinstance(thought, dict)
                for event in self._words("thinking", str(thought.get("text") or ""), BlockKind.THINKING)]

    def _words(self, key: str, text: str, kind: BlockKind = BlockKind.TEXT) -> list[Said]:
        if not text:
            return []
        ended = self._scribe.end(self._voice) if self._voice and self._voice != key else []
        self._voice = key
        return [*ended, *self._scribe.words(key, text, kind)]

    # -- calls ----------------------------------------------------------------------------------------------------

    def _call(self, piece: CallPiece) -> list[Said]:
        function = piece.function or Function()
        name, arguments = function.name or "", function.arguments or ""
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        call, said = self._known(piece), list[Said]()
        if call is None or self._is_new(call, piece, name, arguments):
            call, said = self._begin(piece.index, piece.id, name)
        elif call.repeats(arguments):
            return said
        call.input.append(arguments)
        return [*said, *self._scribe.arguments(call.key, arguments)]

    def _known(self, piece: CallPiece) -> _Open | None:
        if piece.index is not None:
            return self._at.get(piece.index)
        last = self._made[-1] if self._made else None
        return next((call for call in self._made if piece.id and call.id == piece.id), last)

    @staticmethod
    def _is_new(call: _Open, piece: CallPiece, name: str, arguments: str) -> bool:
        """Whether a piece belongs to another call than the one its index, or the lack of one, points to.

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

    def _begin(self, index: int | None, id: str | None, name: str) -> tuple[_Open, list[Said]]:
        said = self._scribe.end_words() if self._voice else []
        self._voice, self.called = "", True
        call = _Open(("call", len(self._made)), id, name)
        self._made.append(call)
        if index is not None:
            self._at[index] = call
        fresh = id if id and id not in self._call_ids else ""  # one that is taken is exchanged for a new one
        self._call_ids.add(fresh)
        return call, [*said, *self._scribe.call(call.key, self._toolbox.call(name, fresh))]


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _only_words(chunk: Chunk, voice: str) -> str | None:
    """What a chunk adds to the text or the thought that is being told, if it does nothing else."""
    choices = chunk.choices
    if choices is None or len(choices) != 1 or chunk.usage is not None:
        return None
    choice = choices[0]
    delta = choice.delta
    if delta is None or choice.index or choice.finish_reason is not None or delta.tool_calls or delta.refusal:
        return None
    thought = delta.reasoning_content or delta.reasoning
    words, other = (delta.content, thought) if voice == "text" else (thought, delta.content)
    return None if other or type(words) is not str else words


def _usage(cost: Cost) -> Usage:
    """What was read from a cache, or written to one, is told apart from what was read anew, as the house has it."""
    before, after = cost.prompt_tokens_details or NO_DETAILS, cost.completion_tokens_details or NO_DETAILS
    read, written = _count(before.cached_tokens), _count(before.cache_write_tokens)
    return Usage(
        input_tokens=max(0, _count(cost.prompt_tokens) - read - written), output_tokens=_count(cost.completion_tokens),
        cache_read_tokens=read, cache_write_tokens=written, thinking_tokens=_count(after.reasoning_tokens),
    )


def _count(told: Any) -> int:
    """Some services count in fractions or in words; what is no number counts nothing."""
    try:
        return min(max(0, int(float(told))), MOST)
    except (TypeError, ValueError, OverflowError):
        return 0
