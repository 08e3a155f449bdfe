"""Values of the model as JSON."""

import json
from typing import Any

import msgspec
import orjson

from gateway.model import Encoded

ENCODED = (orjson.Fragment, Encoded)


def plain(value: Any) -> Any:
    """What orjson does not know by itself, in terms it does; what is encoded already stays as it is."""
    return msgspec.to_builtins(value, str_keys=True, builtin_types=ENCODED)


def to_json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, plain)
    except TypeError:
        return spell_out(value)


def spell_out(value: Any) -> bytes:
    """The slow way, for what orjson refuses: keys that are enum members, huge integers, lone surrogates."""
    return json.dumps(plain(value), separators=(",", ":")).encode()
