"""Values of the model as JSON."""

import json
from typing import Any

import msgspec
import orjson


def plain(value: Any) -> Any:
    """What orjson does not know by itself, in terms it does."""
    return msgspec.to_builtins(value, str_keys=True)


def to_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, plain)
    except TypeError:
        return spell_out(value)


def spell_out(value: Any) -> bytes:
    """The slow way, for what orjson refuses: keys that are enum members, huge integers, lone surrogates."""
    return json.dumps(plain(value), separators=(",", ":")).encode()
