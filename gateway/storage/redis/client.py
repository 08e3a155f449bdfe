"""The client of a Redis server that several gateways share: scripts by name, the epoch of its data, and failures."""

import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import structlog

from gateway.errors import GatewayError, NotFound, Overloaded

from ..sqlite import StorageUnusable
from .address import RedisAddress
from .connection import Command, CommandRefused, RedisConnection, RedisFull, RedisUnreachable
from .replies import Reply
from .scripts import scripts
from .sentinel import make_dial

log = structlog.get_logger("dragoman.redis")
FORMAT = "1"
"""The version of the layout of keys; a server does not use data of a later version."""
DEFAULT_LEASE_SECONDS = 10.0
KEYS_PER_SCAN = 1000
"""How many keys Redis looks at before it serves others again."""


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


class RedisClient:
    """Two connections, one that writes and one that reads, so that neither delays the other.

    The data have an epoch, a random word that the first server stores. Every script that writes names the epoch; if the
    epoch is gone, the data are gone, and the client calls the observer before anything else.
    """

    def __init__(
        self, address: RedisAddress, *, lease: float = DEFAULT_LEASE_SECONDS, fsync: bool = False,
        clock: Callable[[], float] = time.monotonic, name: str = "",
    ) -> None:
        self.address = address
        self.name = name
        """By what name operators know this server."""
        self.clock = clock
        """The clock of leases; it is not that of the loop, because uvloop stops its clock while the loop is busy."""
        self.prefix = address.prefix
        self.replica = secrets.token_hex(6)
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
        self.dial = make_dial(address, self._primary_changed)
        self._writing = RedisConnection(address, self.seconds, self._load_scripts, self.dial)
        self._reading = RedisConnection(address, self.seconds, self._load_scripts, self.dial)

    def attach(self, observer: RedisObserver) -> None:
        """Report to this observer from now on; a client has one observer, which is given once."""
        assert self._observer is None, "a Redis client has one observer"
        self._observer = observer

    async def open(self) -> None:
        """Connect, and check that the server can be used; raises `StorageUnusable`."""
        try:
            await self._check_durability()
            version, self.epoch = await self._begin()
        except (RedisUnreachable, CommandRefused) as error:
            await self.close()
            hint = getattr(error, "hint", RedisUnreachable.hint)
            raise StorageUnusable(f"log: {error}; {hint}") from None
        except StorageUnusable:
            await self.close()
            raise
        if int(version) > int(FORMAT):
            await self.close()
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
        version, epoch = await self._writing.ask(*self._call("begin", FORMAT, secrets.token_hex(8)))
        return version.decode(), epoch.decode()

    async def _check_durability(self) -> None:
        replies = await self._writing.ask_all([
            ("COMMAND", "INFO", "WAITAOF"), ("INFO", "server"), ("INFO", "persistence"), ("INFO", "memory"),
            ("CONFIG", "GET", "appendfsync"),
        ])
        words = _info_fields(*replies[1:])
        if self._fsync and not (isinstance(replies[0], list) and replies[0] and replies[0][0]):
            raise StorageUnusable(
                f"durability: fsync needs a server that can wait for its disk (WAITAOF: Redis 7.2, Valkey); the one at "
                f"{self.address.shown} is version {words.get('redis_version', 'unknown')}; take a newer one, or "
                f"set `durability: normal`"
            )
        if self._fsync and words.get("aof_enabled") == "0":
            raise StorageUnusable(
                f"durability: fsync needs `appendonly yes`, and {self.address.shown} has it off; switch it on, or set "
                f"`durability: normal`"
            )
        if self._fsync and replies[4] == [b"appendfsync", b"no"]:  # not everybody may ask for it
            raise StorageUnusable(
                f"durability: fsync needs `appendfsync everysec` or `always`, and {self.address.shown} has `no`, with "
                f"which it never tells what is on its disk; change it, or set `durability: normal`"
            )
        if words.get("aof_enabled") == "0" and self.address.sentinels:
            log.warning("redis_forgets_at_restart", server=self.address.shown,
                        advice="a primary that restarts empty empties its replicas, too; set appendonly yes")
        if words.get("maxmemory_policy", "noeviction") != "noeviction":
            log.warning("redis_may_evict_data", policy=words["maxmemory_policy"],
                        advice="sessions may be lost when the memory is full; set maxmemory-policy noeviction")

    async def _load_scripts(self, line: RedisConnection) -> None:
        """Load all scripts: a server that was restarted has none."""
        await line.greeting(*(("SCRIPT", "LOAD", text) for _, text in scripts().values()))

    async def close(self) -> None:
        await self._writing.close()
        await self._reading.close()

    # -- asking ---------------------------------------------------------------------------------------------------

    def key(self, *words: str) -> str:
        return self.prefix + ":".join(words)

    def _call(self, script: str, *given: str | bytes | int | float) -> Command:
        return ("EVALSHA", scripts()[script][0], 0, self.prefix, *given)

    async def run_read_script(self, script: str, *given: str | bytes | int | float) -> Reply:
        """Run a script that writes nothing."""
        return (await self.read_all([self._call(script, *given)]))[0]

    async def read_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Send commands that write nothing; if the connection breaks, they are sent again.

        Behind sentinels, return when replicas have what was read: a failover does not take it back.
        """
        waiting = self._replication()
        for attempt in (1, 2):
            try:
                replies = await self._reading.ask_all([*commands, *waiting])
            except RedisUnreachable:
                if attempt == 2:
                    raise
                continue
            if (refusal := next((reply for reply in replies if isinstance(reply, CommandRefused)), None)) is None:
                if waiting:
                    self._check_replicas(replies, self._reading)
                return replies[:len(commands)]
            await self._mend(refusal, self._reading)
        raise RedisUnreachable(f"Redis at {self.address.shown} does not answer as it should")

    async def scan(self, word: str) -> AsyncIterator[str]:
        """The rest of each key that begins with this word; Redis serves others meanwhile, and may repeat a key."""
        start, cursor = self.key(word, ""), b"0"
        pattern = re.sub(r"([*?^\[\]\\-])", r"\\\1", start) + "*"
        while True:
            [[cursor, keys]] = await self.read_all([("SCAN", cursor, "MATCH", pattern, "COUNT", KEYS_PER_SCAN)])
            for key in keys:
                yield key.decode(errors="surrogatepass").removeprefix(start)
            if cursor == b"0":
                return

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
        waiting = self._replication()
        commands = [*(self._call(script, epoch, *given) for script, given in calls), *extra, *waiting]
        for _ in (1, 2):
            replies = await self._writing.ask_all(commands)
            refusal = next((reply for reply in replies if isinstance(reply, CommandRefused)), None)
            if refusal is None:
                if waiting:
                    self._check_replicas(replies, self._writing)
                return replies[:len(commands) - len(waiting)]
            if refusal.kind == "NOSCRIPT" and not any(isinstance(reply, list) for reply in replies):
                await self._mend(refusal, self._writing)
                continue
            await self._refused(refusal, epoch, all(isinstance(reply, CommandRefused) for reply in replies))
        raise RedisUnreachable(f"Redis at {self.address.shown} forgets its scripts")

    def _replication(self) -> list[Command]:
        """Wait until replicas have all that is there now: WAIT waits for the SET, which comes after everything else."""
        if not self.address.wait:
            return []
        return [("SET", self.key("synced"), self.replica), ("WAIT", self.address.wait, self.most_ms)]

    def _check_replicas(self, replies: Sequence[Reply], line: RedisConnection) -> None:
        if replies[-1] < self.address.wait:
            error = RedisUnreachable(
                f"Redis at {self.address.shown} has {replies[-1]} of {self.address.wait} replicas that keep up; "
                f"start them, or lower `wait` in `log:`")
            error.was_sent = True
            line.hang_up("its replicas do not keep up")  # another server may be the primary by now
            raise error

    async def publish(self, channel: str, message: bytes) -> int:
        """Publish a message; return how many connections receive it."""
        return (await self.publish_all([(channel, message)]))[0]

    async def publish_all(self, messages: Sequence[tuple[str, bytes]]) -> list[int]:
        """Publish messages in one write; return how many connections receive each of them."""
        replies = await self._writing.ask_all([("PUBLISH", self.key(channel), words) for channel, words in messages])
        if (refusal := next((reply for reply in replies if isinstance(reply, CommandRefused)), None)) is not None:
            raise RedisUnreachable(f"Redis at {self.address.shown} refuses: {refusal}")
        return replies

    async def _mend(self, refusal: CommandRefused, line: RedisConnection) -> None:
        if refusal.kind != "NOSCRIPT":
            raise RedisUnreachable(f"Redis at {self.address.shown} refuses: {refusal}")
        await line.ask_all([("SCRIPT", "LOAD", text) for _, text in scripts().values()])

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

    def _primary_changed(self) -> None:
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
        if self.trouble is None:
            log.error("storage_write_failed", error=why.message)
        self.trouble = Overloaded(f"nothing can be stored just now: {why.message}")
        if self._observer is not None:
            self._observer.failed(self.trouble)
        return True

    def worked(self) -> None:
        self._failing_since = None
        if self.trouble is not None:
            log.info("storage_write_recovered", server=self.address.shown)
            self.trouble = None


def _info_fields(*replies: Reply) -> dict[str, str]:
    """The fields of INFO."""
    lines = b"\n".join(reply for reply in replies if isinstance(reply, bytes)).decode(errors="replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


class RedisTokenBuckets:
    """Token buckets that several servers share; one script takes tokens and adds those of the time that has passed."""

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis

    async def grant(self, owner: str, rate: float, size: int, wanted: int) -> tuple[int, float]:
        granted, wait = await self._redis.run_script("tokens", owner, rate, size, wanted)
        return int(granted), float(wait)
