"""Reads values of ZenFlux's frames and bodies safely; words by the table's maps in reverse."""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

import orjson

import gateway.model as m
from gateway.errors import BackendFailed
from gateway.json_values import read_exact_json
from mappings.language import Table, builtin_table

Word = TypeVar("Word", bound=StrEnum)
MOST_TOKENS = 2**53


@cache
def builtin_zenflux_table() -> Table:
    """The documented table, without the overrides of one deployment."""
    from adapters.zenflux import DIALECT  # the dialect imports its decoder, so it cannot be imported at the top
    return builtin_table(DIALECT)


# -- maps reversed ----------------------------------------------------------------------------------------------------

@cache
def meanings(words: str, kind: type[Word], *preferred: Word) -> Mapping[str, Word]:
    """A map of the table, from the words on the wire to our members."""
    return builtin_zenflux_table().meanings(words, kind, *preferred)


def outcome_of(word: Any) -> m.Outcome | None:
    return meanings("outcome", m.Outcome).get(word) if isinstance(word, str) else None


def stop_reason_of(word: Any) -> m.StopReason:
    """The stop reason of a message; an unknown word is an ordinary end."""
    known = meanings("stop_reason", m.StopReason)
    return known.get(word, m.StopReason.END_TURN) if isinstance(word, str) else m.StopReason.END_TURN


def stop_cause(word: Any) -> m.StopReason:
    """Why a run was stopped."""
    known = meanings("stop_reason@stopped", m.StopReason, m.StopReason.INTERRUPTED)
    return known.get(word, m.StopReason.INTERRUPTED) if isinstance(word, str) else m.StopReason.INTERRUPTED


def origin_of(word: str) -> m.ToolOrigin | None:
    """The side that runs the call of such a block; None if the block is no call."""
    return meanings("tool_origin", m.ToolOrigin).get(word)


def read_fault(error: Any) -> m.Fault:
    """A server that fails by itself is a failed agent; one that is unavailable may be retried."""
    said = error if isinstance(error, dict) else {"message": error}
    known = meanings("fault", m.FaultCode, m.FaultCode.INTERNAL, m.FaultCode.OVERLOADED)
    code = known.get(str(said.get("type")), m.FaultCode.INTERNAL)
    retryable, away = said.get("retryable"), code is m.FaultCode.BACKEND
    return m.Fault(
        code=m.FaultCode.BACKEND if code is m.FaultCode.INTERNAL else code,
        message=text(said.get("message")) or "the server did not say what went wrong",
        retryable=retryable if isinstance(retryable, bool) else away or code.is_retryable,
    )


# -- values -----------------------------------------------------------------------------------------------------------

def text(value: Any) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def members(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def parsed_json(value: Any) -> Any:
    """An object or a list that is written as JSON in a string, as documented; anything else as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return read_exact_json(value)
    except orjson.JSONDecodeError:
        return value


def index_of(data: dict[str, Any]) -> int:
    index = data.get("index")
    if type(index) is not int:
        raise BackendFailed("the server sent a piece of content without its index")
    return index


def tokens(value: Any) -> int:
    return value if type(value) is int and 0 < value < MOST_TOKENS else 0


def read_usage(content: dict[str, Any]) -> m.Usage:
    """All that a run has cost so far, as its bill has it."""
    return m.Usage(
        input_tokens=tokens(content.get("prompt_tokens")), output_tokens=tokens(content.get("completion_tokens")),
        thinking_tokens=tokens(content.get("thinking_tokens")),
        cache_read_tokens=tokens(content.get("cache_read_tokens")),
        cache_write_tokens=tokens(content.get("cache_write_tokens")),
    )
