"""The data that several gateways share, as those see them that use the data: on one server, or in a cluster."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from .address import RedisAddress
from .client import RedisClient
from .connection import Command
from .pubsub import PubSub
from .replies import Reply


class SharedRedis(Protocol):
    """The data that several gateways share: on one server, or in the partitions of a cluster."""

    @property
    def address(self) -> RedisAddress: ...
    @property
    def name(self) -> str:
        """By what name operators know this gateway."""
    @property
    def replica(self) -> str:
        """The id of this gateway, which is new with each start."""
    @property
    def lease(self) -> float: ...
    @property
    def seconds(self) -> float:
        """How long a reply may take."""
    @property
    def clock(self) -> Callable[[], float]: ...
    @property
    def failovers(self) -> int:
        """How often another server has become the primary."""
    @property
    def parts(self) -> Sequence[RedisClient]:
        """The clients that have the data together, each with an epoch, leases and sessions of its own."""
    def number_of(self, word: str) -> int:
        """Which of the parts has the data of a session, a user or another word."""
    def part_of(self, word: str) -> RedisClient:
        """The part that has the data of a session, a user or another word."""
    def pubsub(self) -> PubSub:
        """Receives what is published; it is not connected yet."""
    def scan(self, word: str) -> AsyncIterator[str]:
        """The rest of each key that begins with this word; a key may be repeated."""
    async def open(self) -> None:
        """Connect, and check that the data can be used; raises `StorageUnusable`."""
    async def check_has_data(self) -> None:
        """Raise `NotFound` if no server has stored anything there; nothing is written."""
    async def ask_servers(self, command: Command) -> list[Reply]:
        """Send a command that concerns no key to each server that has data."""
    async def close(self) -> None: ...
