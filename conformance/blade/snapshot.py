"""TurnProjections compared: what two snapshots of one turn must have in common, whatever else they carry."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from conformance.blade.damaged_members import is_damaged, sound

STREAMED = ("text", "thinking")


def text_of(turn: Mapping[str, Any], kind: str = "text") -> str:
    """The blocks of this kind, put together as the specification does."""
    return "".join(str(block.get("content") or "") for block in turn["blocks"] if block["type"] == kind)


def parent_of(turn: Mapping[str, Any]) -> str | None:
    return turn.get("parent_fork_tool_call_id")


def is_message(turn: Mapping[str, Any]) -> bool:
    """Whether it is a turn of the conversation and not a summary of it; a kind that there is not is no summary."""
    kind = turn.get("kind")
    return is_damaged(kind) or bool(kind != "compaction")


def merged(blocks: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Type and content of the blocks; neighbours of the same streamed kind are one, empty ones none."""
    found: list[list[Any]] = []
    for block in blocks:
        kind, content = block["type"], block.get("content")
        if kind in STREAMED and not content:
            continue
        if kind in STREAMED and found and found[-1][0] == kind:
            found[-1][1] += content
        else:
            found.append([kind, content])
    return found


def plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call without what may be null or absent."""
    names = ("id", "tool_name", "display_name", "status")
    return {name: call[name] for name in names} | {"arguments": read(call["arguments"]), "result": call.get("result")}


def plain(turn: Mapping[str, Any]) -> dict[str, Any]:
    """What a turn says, however it is told."""
    names = ("id", "sequence", "turn_id", "loop_id", "kind", "role", "status")
    return {
        **{name: turn[name] for name in names},
        "parent": parent_of(turn),
        "blocks": merged(turn["blocks"]),
        "tool_calls": [plain_call(call) for call in turn["tool_calls"]],
    }


def read(arguments: Any) -> Any:
    """The JSON in a call's arguments; the text itself where there is none."""
    try:
        return orjson.loads(sound(arguments))
    except orjson.JSONDecodeError:
        return arguments


def meta_of(result: Any) -> Mapping[str, Any]:
    """The `_meta` of a tool's result, which may be an object or the JSON of one."""
    found = read(result) if isinstance(result, str) else result
    meta = found.get("_meta") if isinstance(found, dict) else None
    return meta if isinstance(meta, dict) else {}
