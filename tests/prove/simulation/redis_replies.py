"""What Redis answers, as Python values, and as bytes of RESP2."""

from collections.abc import Sequence


class Status(bytes):
    """A short reply such as OK, which is no bulk string."""


class NullArray:
    """The reply for a list that is not there."""


class RedisFailure(Exception):
    """A command was refused; `message` is what the client reads, its first word is the kind of the error."""

    def __init__(self, message: bytes) -> None:
        super().__init__(message.decode(errors="replace"))
        self.message = message


Reply = int | bytes | None | Sequence["Reply"] | NullArray | RedisFailure
OK, PONG, NULL_ARRAY = Status(b"OK"), Status(b"PONG"), NullArray()
WRONG_TYPE = b"WRONGTYPE Operation against a key holding the wrong kind of value"
NOT_INTEGER = b"ERR value is not an integer or out of range"
NOT_FLOAT = b"ERR value is not a valid float"
SYNTAX = b"ERR syntax error"


def encode(reply: Reply) -> bytes:
    """The bytes of a reply."""
    parts: list[bytes] = []
    _write(reply, parts)
    return b"".join(parts)


def _write(reply: Reply, parts: list[bytes]) -> None:
    if isinstance(reply, Status):
        parts.append(b"+%s\r\n" % reply)
    elif isinstance(reply, bytes):
        parts.append(b"$%d\r\n%s\r\n" % (len(reply), reply))
    elif isinstance(reply, int):
        parts.append(b":%d\r\n" % reply)
    elif reply is None:
        parts.append(b"$-1\r\n")
    elif isinstance(reply, RedisFailure):
        parts.append(b"-%s\r\n" % reply.message.replace(b"\r", b" ").replace(b"\n", b" "))
    elif isinstance(reply, NullArray):
        parts.append(b"*-1\r\n")
    else:
        parts.append(b"*%d\r\n" % len(reply))
        for one in reply:
            _write(one, parts)
