"""One connection to Redis: commands leave in one write, and replies come back in order."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

from hiredis import pack_command
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from gateway.errors import Overloaded

from .address import RedisAddress
from .replies import Reply
from .scripts import scripts
from .sentinel import Dial, make_dial

UNTRUSTED = "its certificate is not trusted", "name the authority that signed it with `?ssl_ca_certs=FILE` in `log:`"
NO_TLS = "it does not speak TLS there", "write redis:// in `log:`, or the port where it does"
OURS = "if it wants a certificate of ours, name it with `?ssl_certfile=FILE&ssl_keyfile=FILE` in `log:`"
OF_TLS = {
    "CERTIFICATE_VERIFY_FAILED": UNTRUSTED,
    "NO_CERTIFICATE_OR_CRL_FOUND": ("ssl_ca_certs names a file that has none", "name a file in PEM format in `log:`"),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": ("it wants a certificate of ours", OURS.partition(", ")[2]),
    "WRONG_VERSION_NUMBER": NO_TLS,
    "RECORD_LAYER_FAILURE": NO_TLS,
}
"""By the reason that the library gives: what is wrong, and what to do."""
LOST = ("reset by peer", "Connection lost", "closed by server")
WHEN_SILENT = "start it, or write redis:// in `log:` if it does not speak TLS there"
WHEN_LOST = {"redis": "if it speaks TLS there, write rediss:// in `log:`", "rediss": OURS}


class RedisUnreachable(Overloaded):
    """The server cannot be reached just now, or does not take what it is given."""

    hint = "start it, or name another server or log in `log:`"
    was_sent = False
    """Whether the server may have got the question, and done what it was asked for."""


class RedisFull(RedisUnreachable):
    """The server answers, and has no room for what it is given."""


def unreachable_error(shown: str, error: BaseException | str) -> RedisUnreachable:
    """The error for a server that cannot be reached; `shown` is its address without its password."""
    why, hint = (error, "") if isinstance(error, str) else _explain(error, shown.partition(":")[0])
    made = RedisUnreachable(f"Redis at {shown} cannot be reached: {why}")
    made.hint = hint or RedisUnreachable.hint
    return made


def _explain(error: BaseException, scheme: str) -> tuple[str, str]:
    for one in _chain(error):
        if isinstance(one, ssl.SSLError) and one.reason:
            return _of_tls(one)
    words = str(error).rstrip(".")
    if not words:
        return "it does not answer", WHEN_SILENT if scheme == "rediss" else ""
    return words, WHEN_LOST.get(scheme, "") if any(mark in words for mark in LOST) else ""


def _of_tls(error: ssl.SSLError) -> tuple[str, str]:
    reason = getattr(error, "verify_message", "").rstrip(".") or error.reason.replace("_", " ").lower()
    why, hint = OF_TLS.get(error.reason, ("TLS cannot be spoken with it", ""))
    if "mismatch" in reason:
        why, hint = "its certificate is for another name", "write the name that it was made for in `log:`"
    return f"{why} ({reason})", hint


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


Command = tuple[str | bytes | int | float, ...]
KINDS: dict[type[Exception], str] = {
    NoScriptError: "NOSCRIPT", OutOfMemoryError: "OOM", ReadOnlyError: "READONLY", MasterDownError: "MASTERDOWN",
    MovedError: "MOVED", AskError: "ASK", TryAgainError: "TRYAGAIN", ClusterDownError: "CLUSTERDOWN",
}
"""The first words of errors, which the library removes from the errors that it knows."""
NOT_PRIMARY = ("READONLY", "MASTERDOWN")
"""The server is a replica by now: the next connection goes to the primary."""


def pack(command: Command) -> bytes:
    """The bytes of a command; a string that is not valid Unicode is encoded too, and matches nothing that is stored."""
    try:
        words: bytes = pack_command(command)  # type: ignore[arg-type]  # it takes any number of words
    except UnicodeEncodeError:
        plain = (word.encode(errors="surrogatepass") if isinstance(word, str) else word for word in command)
        words = pack_command(tuple(plain))  # type: ignore[arg-type]
    return words


def set_synced(prefix: str) -> Command:
    """A write for which WAIT can wait, and which Redis takes when it is full, too."""
    return ("EVALSHA", scripts()["synced"][0], 1, f"{prefix}synced")


class CommandRefused(Exception):
    """Redis has refused a command; `kind` is the first word of its error."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind} {words}".strip())
        self.kind = kind


class RedisConnection:
    """Connects with the first command; when the connection breaks, all who wait for a reply get an error.

    `greet` is awaited with every new connection, before any other command. `dial` makes the connections; several
    connections to the same servers share it.
    """

    def __init__(
        self,
        address: RedisAddress,
        seconds: float,
        greet: Callable[["RedisConnection"], Awaitable[None]] | None = None,
        dial: Dial | None = None,
    ) -> None:
        self._address = address
        self._dial = dial or make_dial(address)
        self._seconds = seconds
        self._greet = greet
        self._connection: AbstractConnection | None = None
        self._waiting: deque[asyncio.Future[Reply]] = deque()
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()

    async def ask(self, *command: str | bytes | int | float) -> Reply:
        """One command and its reply; raises `RedisUnreachable` or `CommandRefused`."""
        reply = (await self.ask_all([command]))[0]
        if isinstance(reply, CommandRefused):
            raise reply
        return reply

    async def ask_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Send several commands in one write; refusals are among the replies."""
        if self._connection is None:
            await self._connect()
        return await self._exchange(commands)

    async def ask_synced(self, commands: Sequence[Command]) -> list[Reply]:
        """As `ask_all`; return when so many replicas have what is there now as the address says.

        WAIT waits for a write, which comes after everything else. If it is refused, its refusal is the last reply.
        """
        if not self._address.wait:
            return await self.ask_all(commands)
        replies = await self.ask_all([*commands, set_synced(self._address.prefix), self.wait_command])
        refused = [reply for reply in replies if isinstance(reply, CommandRefused)]
        if not refused:
            self.check_replicas(replies.pop())
        return [*replies[:len(commands)], *(reply for reply in replies[len(commands):] if reply in refused)]

    @property
    def wait_command(self) -> Command:
        return ("WAIT", self._address.wait, round(self._seconds * 800))

    def check_replicas(self, number: int) -> None:
        """Raise `RedisUnreachable` if so many replicas are too few."""
        if number < self._address.wait:
            error = RedisUnreachable(
                f"Redis at {self._address.shown} has {number} of {self._address.wait} replicas that keep up; "
                f"start them, or lower `wait` in `log:`")
            error.was_sent = True
            self.hang_up("its replicas do not keep up")  # another server may be the primary by now
            raise error

    async def _exchange(self, commands: Sequence[Command]) -> list[Reply]:
        """Write without waiting, so that a cancelled caller leaves no half command; then wait for the replies."""
        connection = self._connection
        if connection is None or connection._writer is None:
            raise self._gone("the connection was lost")
        loop = asyncio.get_running_loop()
        replies = [loop.create_future() for _ in commands]
        self._waiting.extend(replies)
        connection._writer.write(b"".join(map(pack, commands)))
        try:
            async with asyncio.timeout(self._seconds):
                return [await reply for reply in replies]
        except TimeoutError:
            self._drop(connection, "it does not answer")
            raise self._gone("it does not answer", was_sent=True) from None

    async def _connect(self) -> None:
        async with self._connecting:
            if self._connection is not None:
                return
            try:
                async with asyncio.timeout(self._seconds):
                    connection = await self._dial(self._seconds)
            except (RedisError, OSError, TimeoutError) as error:
                raise self._gone(error) from None
            self._connection = connection
            self._reading = asyncio.create_task(self._read(connection), name="redis replies")
            if self._greet is not None:
                try:
                    await self._greet(self)
                except BaseException:
                    self._drop(connection, "it was not as it should be")
                    raise

    async def greeting(self, *commands: Command) -> list[Reply]:
        """Send commands on a new connection; only `greet` does."""
        return await self._exchange(commands)

    async def _read(self, connection: AbstractConnection) -> None:
        why = "the connection was lost"
        try:
            while True:
                reply = await self._next(connection)
                if self._waiting:
                    waiter = self._waiting.popleft()
                    if not waiter.done():
                        waiter.set_result(reply)
                if isinstance(reply, CommandRefused) and reply.kind in NOT_PRIMARY:
                    why = "it is a replica now"
                    return
        except (RedisError, OSError) as error:
            why = str(error)
        finally:
            self._drop(connection, why)

    @staticmethod
    async def _next(connection: AbstractConnection) -> Reply:
        try:
            return await connection.read_response(disconnect_on_error=False)
        except ResponseError as error:
            return CommandRefused(KINDS.get(type(error), ""), str(error))

    def _drop(self, connection: AbstractConnection, why: str) -> None:
        """Close the connection; all who wait for a reply get an error."""
        if self._connection is not connection:
            return
        self._connection = None
        waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(self._gone(why, was_sent=True))
                waiter.exception()
        if self._reading is not None and self._reading is not asyncio.current_task():
            self._reading.cancel()
        if (writer := connection._writer) is not None:
            writer.transport.abort()

    def hang_up(self, why: str) -> None:
        """Break the connection, so that the next command makes another one."""
        if self._connection is not None:
            self._drop(self._connection, why)

    def _gone(self, why: BaseException | str, *, was_sent: bool = False) -> RedisUnreachable:
        made = unreachable_error(self._address.shown, why)
        made.was_sent = was_sent
        return made

    async def close(self) -> None:
        if (connection := self._connection) is not None:
            self._drop(connection, "the server stops")
            with suppress(RedisError, OSError):
                await connection.disconnect(nowait=True)
        if self._reading is not None:
            await asyncio.wait([self._reading], timeout=1)
