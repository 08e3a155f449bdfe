"""The client of a Redis server that several gateways share: scripts by name, the epoch of its data, and failures."""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from gateway.errors import GatewayError, NotFound, Overloaded

from ..sqlite import StorageUnusable
from .address import RedisAddress
from .connection import Command, CommandRefused, RedisConnection, RedisFull, RedisUnreachable
from .durability import check_durability
from .lines import RedisLine, glob_escaped, load_commands, routing_keys, scan_keys
from .pubsub import RedisPubSub
from .replies import Reply
from .scripts import scripts
from .sentinel import make_dial

log = structlog.get_logger("dragoman.redis")
FORMAT = "1"
"""The version of the layout of keys; a server does not use data of a later version."""
MOVING_FORMAT = "1000000"
"""The format of data that are not complete yet, because they are being moved from another Redis."""
DEFAULT_LEASE_SECONDS = 10.0


class RedisDataLost(Overloaded):
    """The data in Redis are not those of before: no session in memory is valid any more."""

    nothing_stored = True


class RedisObserver(Protocol):
    """The log, as the client sees it: the client reports what concerns all data in Redis."""

    def failed(self, error: GatewayError) -> None:
        """Nothing could be stored for so long that waiting callers must get the error."""
    def data_lost(self) -> None:
        """Redis has lost its data: nothing that was read or written before is there."""
    def primary_changed(self) -> None:
        """Another server is the primary now, and may lack the last of what the one before had."""


@dataclass(frozen=True)
class ClusterShare:
    """What makes a client the client of one partition of a cluster."""

    number: int
    of: int
    """How many partitions there are."""
    prefix: str
    replica: str
    writing: RedisLine
    reading: RedisLine
    covers: Callable[[str], bool]
    failing: set[int]
    """The numbers of all partitions in which nothing can be stored just now: the log tells the first and the last."""


class RedisClient:
    """Two connections, one that writes and one that reads, so that neither delays the other.

    The data have an epoch, a random word that the first server stores. Every script that writes names the epoch; if the
    epoch is gone, the data are gone, and the client calls the observer before anything else.
    """

    def __init__(
        self, address: RedisAddress, *, lease: float = DEFAULT_LEASE_SECONDS, fsync: bool = False,
        clock: Callable[[], float] = time.monotonic, name: str = "", share: ClusterShare | None = None,
    ) -> None:
        self.address = address
        self.name = name
        """By what name operators know this server."""
        self.clock = clock
        """The clock of leases; it is not that of the loop, because uvloop stops its clock while the loop is busy."""
        self.prefix = address.prefix if share is None else share.prefix
        self.parts: Sequence[RedisClient] = (self,)
        """The clients that have the data together: this one, or one for each partition."""
        self.covers = share.covers if share is not None else (lambda word: True)
        """Whether the data of a session, a user or another word are here."""
        self.replica = secrets.token_hex(6) if share is None else share.replica
        """The id of this server, which is new with each start."""
        self.lease = lease
        self.epoch = ""
        self.trouble: GatewayError | None = None
        """Why nothing can be stored just now."""
        self._observer: RedisObserver | None = None
        self._fsync = fsync
        self._failing_since: float | None = None
        self.seconds = max(0.25, min(5.0, lease / 2))
        """How long a reply may take."""
        self.failovers = 0
        """How often another server has become the primary."""
        self._is_share, self._numbers = share is not None, () if share is None else (share.number, share.of)
        self._failing: set[int] = set() if share is None else share.failing
        self._number = 0 if share is None else share.number
        self._routing: Command = (0,)
        if share is not None:
            self._routing = (2, *routing_keys(self.prefix))
            self._writing, self._reading = share.writing, share.reading
            return
        self._dial = make_dial(address, self.primary_changed)
        self._writing = RedisConnection(address, self.seconds, self._load_scripts, self._dial)
        self._reading = RedisConnection(address, self.seconds, self._load_scripts, self._dial)

    def number_of(self, word: str) -> int:
        """Which of the parts has the data of a session, a user or another word."""
        return 0

    def part_of(self, word: str) -> "RedisClient":
        return self

    def pubsub(self) -> RedisPubSub:
        """A connection for what is published; it is not open yet."""
        return RedisPubSub(self.address, self.seconds, self.clock, self._dial)

    def attach(self, observer: RedisObserver) -> None:
        """Report to this observer from now on; a client has one observer, which is given once."""
        assert self._observer is None, "a Redis client has one observer"
        self._observer = observer

    async def open(self) -> None:
        """Connect, and check that the server can be used; raises `StorageUnusable`."""
        try:
            await check_durability(self._writing, self.address, self._fsync)
            await self.begin()
        except (RedisUnreachable, CommandRefused) as error:
            await self.close()
            hint = getattr(error, "hint", RedisUnreachable.hint)
            raise StorageUnusable(f"log: {error}; {hint}") from None
        except StorageUnusable:
            await self.close()
            raise

    async def begin(self) -> None:
        """Learn the epoch of the data, or begin one; raises `StorageUnusable` if their format is not known here."""
        version, self.epoch = await self._begin()
        if version == MOVING_FORMAT:
            raise StorageUnusable(
                f"log: the data at {self.address.shown} are not complete: `dragoman log move` has not ended; wait for "
                f"it, or run it again")
        if int(version) > int(FORMAT):
            raise StorageUnusable(
                f"log: {self.address.shown} was written by a newer Dragoman (format {version}, this one knows "
                f"{FORMAT}); install that one, or choose another database or `?prefix=` in `log:`"
            )

    async def check_has_data(self) -> None:
        """Raise `NotFound` if no server has stored anything there; nothing is written."""
        if not (await self.read_all([("EXISTS", self.key("epoch"))]))[0]:
            raise NotFound(
                f"log: {self.address.shown} has no data of Dragoman under the prefix '{self.prefix.rstrip(':')}'; "
                "name the address, the database and the `?prefix=` that the servers use")

    async def _begin(self) -> tuple[str, str]:
        version, epoch = await self._writing.ask(*self._call("begin", FORMAT, secrets.token_hex(8), *self._numbers))
        return version.decode(), epoch.decode()

    async def _load_scripts(self, line: RedisConnection) -> None:
        """Load all scripts: a server that was restarted has none."""
        await line.greeting(*load_commands())

    async def close(self) -> None:
        await self._writing.close()
        await self._reading.close()

    # -- asking ---------------------------------------------------------------------------------------------------

    def key(self, *words: str) -> str:
        return self.prefix + ":".join(words)

    def _call(self, script: str, *given: str | bytes | int | float) -> Command:
        return ("EVALSHA", scripts(sharded=self._is_share)[script][0], *self._routing, self.prefix, *given)

    async def run_read_script(self, script: str, *given: str | bytes | int | float) -> Reply:
        """Run a script that writes nothing."""
        return (await self.read_all([self._call(script, *given)]))[0]

    async def read_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands that write nothing; if the connection breaks, they are sent again.

        Behind sentinels, return when replicas have what was read: a failover does not take it back.
        """
        for attempt in (1, 2):
            try:
                replies = await self._reading.ask_synced(commands)
            except RedisUnreachable:
                if attempt == 2:
                    raise
                continue
            if (refusal := next((reply for reply in replies if isinstance(reply, CommandRefused)), None)) is None:
                return replies
            await self._mend(refusal, self._reading)
        raise RedisUnreachable(f"Redis at {self.address.shown} does not answer as it should")

    async def ask_servers(self, command: Command) -> list[Reply]:
        """Send a command that concerns no key to each server that has data: to this one."""
        return await self.read_all([command])

    async def scan(self, word: str) -> AsyncIterator[str]:
        """The rest of each key that begins with this word; Redis serves others meanwhile, and may repeat a key."""
        start = self.key(word, "")
        async for key in scan_keys(self, glob_escaped(start) + "*"):
            yield key.removeprefix(start)

    async def run_script(self, script: str, *given: str | bytes | int | float) -> Reply:
        """Run a script that writes; if the connection breaks, the caller cannot know whether it ran."""
        return (await self.run_scripts([(script, given)]))[0]

    async def run_scripts(
        self, calls: Sequence[tuple[str, Sequence[str | bytes | int | float]]], *extra: Command,
    ) -> list[Reply]:
        """Run several such scripts in one write; `extra` commands follow them.

        Behind sentinels, return when so many replicas have the changes as the address says: a failover keeps them.
        """
        epoch = self.epoch
        commands = [*(self._call(script, epoch, *given) for script, given in calls), *extra]
        for _ in (1, 2):
            replies = await self._writing.ask_synced(commands)
            refusal = next((reply for reply in replies if isinstance(reply, CommandRefused)), None)
            if refusal is None:
                return replies
            if refusal.kind == "NOSCRIPT" and not any(isinstance(reply, list) for reply in replies):
                await self._mend(refusal, self._writing)
                continue
            await self._refused(refusal, epoch, all(isinstance(reply, CommandRefused) for reply in replies))
        raise RedisUnreachable(f"Redis at {self.address.shown} forgets its scripts")

    async def write_all(self, commands: Sequence[Command]) -> None:
        """Send commands that write; raises `RedisUnreachable` if one is refused."""
        replies = await self._writing.ask_synced(commands)
        if (refusal := next((reply for reply in replies if isinstance(reply, CommandRefused)), None)) is not None:
            raise RedisUnreachable(f"Redis at {self.address.shown} refuses: {refusal}")

    async def publish(self, channel: str, message: bytes) -> int:
        """Publish a message; return how many connections receive it."""
        return (await self.publish_all([(channel, message)]))[0]

    async def publish_all(self, messages: Sequence[tuple[str, bytes]]) -> list[int]:
        """Publish messages in one write; return how many connections receive each of them."""
        publish = "SPUBLISH" if self._is_share else "PUBLISH"
        replies = await self._writing.ask_all([
            (publish, self.key(channel), words) for channel, words in messages])
        if (refusal := next((reply for reply in replies if isinstance(reply, CommandRefused)), None)) is not None:
            raise RedisUnreachable(f"Redis at {self.address.shown} refuses: {refusal}")
        return replies

    async def _mend(self, refusal: CommandRefused, line: RedisLine) -> None:
        if refusal.kind != "NOSCRIPT":
            raise RedisUnreachable(f"Redis at {self.address.shown} refuses: {refusal}")
        await line.ask_all(load_commands(sharded=self._is_share))

    async def _refused(self, refusal: CommandRefused, epoch: str, nothing_done: bool) -> None:
        if not str(refusal).startswith("RESET"):
            kind = RedisFull if refusal.kind == "OOM" else RedisUnreachable
            error = kind(f"Redis at {self.address.shown} refuses: {refusal}")
            error.was_sent = not nothing_done
            raise error
        if self.epoch == epoch:
            _, begun = await self._begin()
            if self.epoch == epoch:
                self.epoch = begun
                log.error("redis_data_lost", server=self.address.shown)
                if self._observer is not None:
                    self._observer.data_lost()
        raise RedisDataLost("the server has lost its data; begin anew")

    # -- going away and coming back -------------------------------------------------------------------------------

    def primary_changed(self) -> None:
        """Another server is the primary of these data now."""
        self.failovers += 1
        if self._observer is not None:
            self._observer.primary_changed()

    @property
    def most_ms(self) -> int:
        """How many milliseconds the server may take for one command."""
        return round(self.seconds * 800)

    @property
    def patience(self) -> float:
        """For how many seconds Redis may be unreachable before the client calls the observer."""
        return min(2.0, self.lease / 4)

    def failed(self, why: GatewayError) -> bool:
        """Note that storing failed; return whether it has failed for so long that the observer was called."""
        now = self.clock()
        self._failing_since = now if self._failing_since is None else self._failing_since
        if now - self._failing_since < self.patience:
            return False
        if not self._failing:
            log.error("storage_write_failed", error=why.message)
        self._failing.add(self._number)
        self.trouble = Overloaded(f"nothing can be stored just now: {why.message}")
        if self._observer is not None:
            self._observer.failed(self.trouble)
        return True

    def worked(self) -> None:
        self._failing_since = None
        if self.trouble is not None:
            self.trouble = None
            self._failing.discard(self._number)
            if not self._failing:
                log.info("storage_write_recovered", server=self.address.shown)
