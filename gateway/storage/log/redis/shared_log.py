"""The log that several servers share, as they see it: on one Redis server, or in the partitions of a cluster."""

from collections.abc import Sequence
from typing import Protocol

import gateway.model as m
from gateway.ports import EventLog, LogListener
from gateway.storage.redis import SharedRedis
from gateway.storage.sealing import Seal

from .commit_outcomes import LeaseListener
from .writer import RedisLog


class SharedLog(EventLog, Protocol):
    """A log of which this server writes the sessions whose tokens it holds."""

    @property
    def redis(self) -> SharedRedis: ...
    @property
    def seal(self) -> Seal: ...
    @property
    def parts(self) -> Sequence[RedisLog]:
        """The logs that have the sessions together."""
    def part_of(self, session_id: str) -> RedisLog:
        """The log that has this session."""
    def attach(self, listener: LogListener, leases: LeaseListener | None = None) -> None:
        """Report to these listeners from now on; the second one gets the sessions that were lost."""
    async def since(self, session_id: str, after: int) -> list[m.Record] | None:
        """The records after that one; None if there is no such session, or its log is shorter than that."""
    async def flush(self) -> None:
        """Wait until all records are stored, for as long as a lease lasts at most."""
    async def recount(self) -> None:
        """Ask how much each known owner has: other servers store for them, too."""
    @property
    def held(self) -> Sequence[str]:
        """The sessions that this server writes."""
    def holds(self, session_id: str) -> bool: ...
    def hold(self, session_id: str, token: str, head: int) -> None:
        """This server writes the session from now on."""
    def let_go(self, session_id: str) -> str | None:
        """This server does not write the session any more. Returns the token it had."""
    def is_overtaken(self, session_id: str, token: int) -> bool:
        """Whether this server holds the session by a token that is older than this one."""
    def is_settled(self, session_id: str) -> bool:
        """Whether no record of the session waits to be stored."""
