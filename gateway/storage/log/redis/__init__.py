"""The log in Redis, which several servers share: one stream per session, which one server writes at a time.

The records of one group and one session are one entry of its stream, whose id is the number of the last record: an
entry can neither be stored twice nor be missing unnoticed. All sessions of a group are sent to Redis in one write. A
script checks the token of the writer and the expected head, then stores the entry and its lookup ids, and publishes it.
If the reply to a write is lost, the write is sent again, and the head says how much of it was stored already.

What is promised depends on the server: with `appendonly yes` and `appendfsync everysec`, what a client has seen
survives the death of every gateway, and of Redis itself; if the machine under Redis dies, up to a second of it may be
lost. With `durability: fsync` (WAITAOF), no ask and no end of a turn that a client has seen is lost even then.
"""

from .commit_outcomes import Covers, LeaseListener, LeaseLost, SessionLimitReached
from .partitioned import PartitionedLog
from .reader import decode_entry
from .shared_log import SharedLog
from .writer import RedisLog

__all__ = [
    "Covers",
    "LeaseListener",
    "LeaseLost",
    "PartitionedLog",
    "RedisLog",
    "SessionLimitReached",
    "SharedLog",
    "decode_entry",
]
