"""How deep JSON may be nested: more can be read than can be written, and what came in must go out again."""

from typing import Any

import orjson

ROOM = 100
"""How many levels may be put around a value: it goes out within records, frames and bodies."""


def is_too_deep(value: Any, written: bytes) -> bool:
    """Whether there is no such room around a value, which is written so; few brackets are room enough."""
    if written.count(b"{") + written.count(b"[") <= ROOM:
        return False
    for _ in range(ROOM):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return True
    return False
