"""One chunk of a chat-completions answer: its shape, the words it adds, and what it says of the cost."""

from typing import Any

import msgspec
from msgspec import Struct

from gateway.model import Usage

MOST = 2 ** 53
"""More than anybody counts to."""


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


decoded = msgspec.json.Decoder(Chunk).decode
NOTHING, NO_DETAILS = Chunk(), Details()


def only_words(chunk: Chunk, voice: str) -> str | None:
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


def usage_of(cost: Cost) -> Usage:
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
