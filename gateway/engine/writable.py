"""What can be written into the log and read again: one record that cannot would hold up those of all sessions."""

from typing import Any, TypeVar

import msgspec
import orjson

from gateway.model import DEEPEST, Event, Fault, GrammarError, LimitExceeded, check_limits

W = TypeVar("W", bound=Event | Fault)


def writable(said: W) -> W:
    """The same as the log would give it back; raises `GrammarError` if it would not."""
    kind, name = type(said), getattr(said, "name", "a fault")
    try:
        plain = msgspec.to_builtins(said, builtin_types=(bytes,))
        return msgspec.json.decode(_written(plain), type=kind)
    except LimitExceeded as error:
        raise GrammarError(f"{name} has a field that cannot be carried: {error}") from None
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise GrammarError(f"{name} has a field that cannot be written: {error}") from None


def _written(plain: Any) -> bytes:
    """The JSON of a value; few brackets cannot be nested too deep. Raises `LimitExceeded` or `TypeError`."""
    try:
        written = orjson.dumps(plain)
    except TypeError:
        check_limits(plain)
        raise
    if written.count(b"{") + written.count(b"[") > DEEPEST:
        check_limits(plain)
    return written


def tellable(fault: Fault) -> Fault:
    """The same fault, or what can be told of it: an agent may put anything into it, and must still be able to fail."""
    try:
        return writable(fault)
    except GrammarError:
        words = str(fault.message).encode(errors="replace").decode()
        return Fault(code=fault.code, message=words, retryable=fault.retryable)


def named(scope_id: str) -> str:
    """The id of a scope, which stands in every record of it."""
    if not is_text(scope_id):
        raise GrammarError("the id of a scope is no text that can be written")
    return scope_id


def is_text(words: object) -> bool:
    """Whether this is a string that can be written everywhere; nine events of ten need no more than this."""
    return type(words) is str and (words.isascii() or _is_unicode(words))


def _is_unicode(words: str) -> bool:
    try:
        words.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True
