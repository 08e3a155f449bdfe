"""The log in Redis, which many servers share: one stream per session, and one writer at a time, held to it by a token.

What one moment has of one session is one entry of its stream, under the number of its last record, so that an entry
can neither be there twice nor be missing unnoticed. All sessions of a moment go to the server in one write, and each is
appended by one step of a script: the writer's token, the head it expects, the entry, the places and the wake-up. A
write whose reply was lost is sent again, and the head tells how much of it was there already.

What is promised depends on the server: with `appendonly yes` and `appendfsync everysec`, what a client has seen
survives the death of every gateway, and of Redis itself; if the machine under Redis dies, up to a second of it may be
lost. With `durability: fsync` (WAITAOF), no ask and no end of a turn that a client has seen is lost even then.
"""

from .reader import decode_entry
from .writer import LeaseListener, LeaseLost, RedisLog, SessionLimitReached

__all__ = [
    "LeaseListener",
    "LeaseLost",
    "RedisLog",
    "SessionLimitReached",
    "decode_entry",
]
