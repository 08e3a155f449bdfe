"""A simulated Redis: it knows no socket and no clock, and carries out commands in the order in which they arrive."""

import asyncio
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Literal

from hiredis import Reader

from .redis_commands import COMMANDS, NotSimulated, carry_out, wrong_number
from .redis_data import Keyspace
from .redis_replies import NULL_ARRAY, OK, PONG, RedisFailure, Reply, Status, encode
from .redis_scripts import Scripts

Keep = Literal["all", "fsynced", "nothing"]
VERSION = b"7.2.0"
SUBSCRIBER_COMMANDS = (b"SUBSCRIBE", b"UNSUBSCRIBE", b"PING", b"QUIT")


class SimulatedRedis:
    """One server; `clock` says the time of day in seconds."""

    def __init__(
        self, clock: Callable[[], float], *, random: Random | None = None,
        appendfsync: Literal["always", "everysec"] = "everysec",
    ) -> None:
        self.unknown: list[str] = []
        """What was asked for and is not simulated: a run in which that happened says nothing."""
        self.write_refusal: bytes | None = None
        """The error with which every command is refused that writes."""
        self.data = Keyspace(clock, always=appendfsync == "always")
        self._appendfsync = appendfsync.encode()
        self._random = random or Random(0)
        self._scripts = Scripts(self._carry_out)
        self._subscribers: dict[bytes, dict[RedisProtocol, None]] = {}
        self._life = 0

    def connection(self) -> "RedisProtocol":
        """The server's end of a new connection."""
        return RedisProtocol(self, self._life)

    def crash(self, keep: Keep) -> None:
        """Die, and come back: with everything if only the process died, with what was fsynced if the machine did.

        Scripts and subscriptions are gone, and connections of before are not answered any more.
        """
        self._life += 1
        self._scripts.clear()
        self._subscribers.clear()
        if keep == "nothing":
            self.data.clear()
            self.data.sync()
        elif keep == "fsynced":
            self.data.lose_unsynced()

    def is_alive(self, life: int) -> bool:
        """Whether a connection of that life of the server still leads anywhere."""
        return life == self._life

    # -- commands -------------------------------------------------------------------------------------------------

    def answer(self, words: Sequence[bytes], asker: "RedisProtocol") -> list[Reply]:
        """Carry out one command; it has one reply, except for subscriptions."""
        try:
            name = words[0].upper()
            if name in (b"SUBSCRIBE", b"UNSUBSCRIBE"):
                return self._subscribe(name, words[1:], asker)
            if asker.channels and name not in SUBSCRIBER_COMMANDS:
                raise RedisFailure(
                    b"ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                    b"allowed in this context" % name.lower())
            if name == b"PING" and asker.channels:
                return [[b"pong", words[1] if len(words) > 1 else b""]]
            served = SERVER_COMMANDS.get(name)
            return [self._carry_out(words) if served is None else served(self, words[1:])]
        except NotSimulated as failure:
            self.unknown.append(b" ".join(words)[:200].decode(errors="replace"))
            return [failure]
        except RedisFailure as failure:
            return [failure]

    def _carry_out(self, words: Sequence[bytes]) -> Reply:
        """A command of a client or of a script."""
        name = words[0].upper()
        if name == b"PUBLISH":
            return self._publish(words[1:])
        if self.write_refusal is not None and (found := COMMANDS.get(name)) is not None and found.writes:
            raise RedisFailure(self.write_refusal)
        return carry_out(self.data, self._random, words)

    def _eval(self, args: Sequence[bytes]) -> Reply:
        return self._scripts.run(self._scripts.load(args[0]), args[1:])

    def _evalsha(self, args: Sequence[bytes]) -> Reply:
        if len(args) < 2:
            raise wrong_number(b"evalsha")
        return self._scripts.run(args[0], args[1:])

    def _script(self, args: Sequence[bytes]) -> Reply:
        match args[0].upper():
            case b"LOAD":
                return self._scripts.load(args[1])
            case b"EXISTS":
                return [int(self._scripts.has(digest)) for digest in args[1:]]
            case b"FLUSH":
                self._scripts.clear()
                return OK
        raise NotSimulated(b"ERR unknown subcommand '%s'. Try SCRIPT HELP." % args[0])

    def _ping(self, args: Sequence[bytes]) -> Reply:
        return args[0] if args else PONG

    def _client(self, args: Sequence[bytes]) -> Reply:
        if args[0].upper() in (b"SETINFO", b"SETNAME"):
            return OK
        raise NotSimulated(b"ERR unknown subcommand '%s'. Try CLIENT HELP." % args[0])

    def _select(self, args: Sequence[bytes]) -> Reply:
        if args[0] != b"0":
            raise NotSimulated(b"ERR only database 0 is simulated")
        return OK

    def _info(self, args: Sequence[bytes]) -> Reply:
        return (b"redis_version:%s\r\naof_enabled:1\r\nmaxmemory_policy:noeviction\r\n" % VERSION)

    def _config(self, args: Sequence[bytes]) -> Reply:
        if [word.lower() for word in args] == [b"get", b"appendfsync"]:
            return [b"appendfsync", self._appendfsync]
        raise NotSimulated(b"ERR CONFIG is simulated for GET appendfsync only")

    def _command(self, args: Sequence[bytes]) -> Reply:
        if args[0].upper() != b"INFO":
            raise NotSimulated(b"ERR unknown subcommand '%s'. Try COMMAND HELP." % args[0])
        return [
            [name.lower(), -1] if name.upper() in COMMANDS or name.upper() in SERVER_COMMANDS else NULL_ARRAY
            for name in args[1:]
        ]

    def _waitaof(self, args: Sequence[bytes]) -> Reply:
        """The disk is written at once: a server may be that quick."""
        self.data.sync()
        return [1, 0]

    # -- channels -------------------------------------------------------------------------------------------------

    def _publish(self, args: Sequence[bytes]) -> Reply:
        if len(args) != 2:
            raise wrong_number(b"publish")
        receivers = self._subscribers.get(args[0], {})
        for one in tuple(receivers):
            one.send([b"message", args[0], args[1]])
        return len(receivers)

    def _subscribe(self, name: bytes, channels: Sequence[bytes], asker: "RedisProtocol") -> list[Reply]:
        if name == b"SUBSCRIBE":
            if not channels:
                raise wrong_number(name)
            return [self._join(channel, asker) for channel in channels]
        left = channels or tuple(asker.channels)
        return [self._leave(channel, asker) for channel in left] or [[b"unsubscribe", None, 0]]

    def _join(self, channel: bytes, asker: "RedisProtocol") -> Reply:
        asker.channels[channel] = None
        self._subscribers.setdefault(channel, {})[asker] = None
        return [b"subscribe", channel, len(asker.channels)]

    def _leave(self, channel: bytes, asker: "RedisProtocol") -> Reply:
        asker.channels.pop(channel, None)
        receivers = self._subscribers.get(channel, {})
        receivers.pop(asker, None)
        if not receivers:
            self._subscribers.pop(channel, None)
        return [b"unsubscribe", channel, len(asker.channels)]

    def leave_all(self, asker: "RedisProtocol") -> None:
        for channel in tuple(asker.channels):
            self._leave(channel, asker)


SERVER_COMMANDS: dict[bytes, Callable[[SimulatedRedis, Sequence[bytes]], Reply]] = {
    b"EVAL": SimulatedRedis._eval,
    b"EVALSHA": SimulatedRedis._evalsha,
    b"SCRIPT": SimulatedRedis._script,
    b"PING": SimulatedRedis._ping,
    b"CLIENT": SimulatedRedis._client,
    b"SELECT": SimulatedRedis._select,
    b"INFO": SimulatedRedis._info,
    b"CONFIG": SimulatedRedis._config,
    b"COMMAND": SimulatedRedis._command,
    b"WAITAOF": SimulatedRedis._waitaof,
    b"QUIT": lambda server, args: OK,
}


class RedisProtocol(asyncio.Protocol):
    """The server's end of one connection: reads commands, writes replies and what is published."""

    def __init__(self, server: SimulatedRedis, life: int) -> None:
        self.channels: dict[bytes, None] = {}
        self._server = server
        self._life = life
        self._reader = Reader()
        self._transport: Any = None
        self._out: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        self._out = []
        while self._server.is_alive(self._life) and (words := self._reader.gets()) is not False:
            for reply in self._server.answer(words, self):
                self.send(reply)
        out, self._out = self._out, None
        if out and self._server.is_alive(self._life):
            self._transport.write(b"".join(out))

    def send(self, reply: Reply) -> None:
        """Write a reply; replies to commands that came together leave together."""
        encoded = encode(reply)
        if self._out is not None:
            self._out.append(encoded)
        else:
            self._transport.write(encoded)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.leave_all(self)


__all__ = ["RedisProtocol", "SimulatedRedis", "Status"]
