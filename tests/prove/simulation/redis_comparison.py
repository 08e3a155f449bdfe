"""The same calls to a real Redis server and to the simulated one: replies, messages, and all that is stored."""

import math
import socket
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hiredis import Reader, ReplyError, pack_command

from gateway.storage.redis.scripts import scripts

from .redis_calls import CHANNELS, PREFIX, RandomCalls, Word
from .redis_server import SimulatedRedis

NAMES = {digest: name for name, (digest, _) in scripts().items()}
UNORDERED = {"orphans", "keys_load", "SMEMBERS", "HKEYS", "KEYS", "SINTER"}
"""Calls whose reply is a list in an order that Redis does not promise."""
CALLS_AT_ONCE = 200
SLACK = 600_000
"""By how many milliseconds two clocks may differ while a comparison runs."""


class Link:
    """A connection to a server, on which one call is made after the other."""

    def __init__(self) -> None:
        self._reader = Reader(notEnoughData=Ellipsis)

    def send(self, data: bytes) -> None:
        raise NotImplementedError

    def more(self) -> bytes:
        raise NotImplementedError

    def ask(self, *words: Word) -> Any:
        self.send(pack_command(words))  # type: ignore[arg-type]
        return self.read()

    def read(self) -> Any:
        while (reply := self._reader.gets()) is Ellipsis:
            self._reader.feed(self.more())
        return reply


class RealLink(Link):
    """To a server on a port of this machine."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._sock = socket.create_connection(("127.0.0.1", port), 60)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self._sock.sendall(data)

    def more(self) -> bytes:
        data = self._sock.recv(1 << 20)
        if not data:
            raise ConnectionError("the server has closed the connection")
        return data

    def close(self) -> None:
        self._sock.close()


class SimulatedLink(Link):
    """To a simulated server; it is the transport of the server's end."""

    def __init__(self, server: SimulatedRedis) -> None:
        super().__init__()
        self._arrived = b""
        self._protocol = server.connection()
        self._protocol.connection_made(self)  # type: ignore[arg-type]

    def send(self, data: bytes) -> None:
        self._protocol.data_received(data)

    def write(self, data: bytes) -> None:
        self._arrived += data

    def more(self) -> bytes:
        assert self._arrived, "the simulated server has not answered"
        data, self._arrived = self._arrived, b""
        return data


@dataclass
class Comparison:
    """What was called, how often, and where the two servers differ."""

    calls: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    messages: int = 0
    keys: int = 0


class Comparer:
    """Makes calls of a simulated server at once, and the same calls of a real one some at a time."""

    def __init__(self, port: int) -> None:
        self.result, self._server = Comparison(), SimulatedRedis(time.time)
        self._real, self._simulated = RealLink(port), SimulatedLink(self._server)
        self._listeners = RealLink(port), SimulatedLink(self._server)
        self._waiting: list[tuple[tuple[Word, ...], Any]] = []
        for listener in self._listeners:
            listener.send(pack_command(("SUBSCRIBE", *CHANNELS)))  # type: ignore[arg-type]
            assert [listener.read()[2] for _ in CHANNELS] == list(range(1, len(CHANNELS) + 1))

    def look(self, *words: Word) -> Any:
        """What the simulated server has."""
        return self._simulated.ask(*words)

    def ask(self, *words: Word) -> Any:
        """The reply of the simulated server; that of the real one is compared with it later."""
        reply = self._simulated.ask(*words)
        self._waiting.append((words, reply))
        if len(self._waiting) >= CALLS_AT_ONCE:
            self._ask_real()
        return reply

    def _ask_real(self) -> None:
        self._real.send(b"".join(pack_command(words) for words, _ in self._waiting))  # type: ignore[arg-type]
        for words, here in self._waiting:
            there, name = self._real.read(), name_of(words)
            self.result.calls[name] += 1
            if isinstance(there, ReplyError):
                self.result.refusals[str(there).split(" ", 1)[0]] += 1
            if not is_same(name, there, here):
                self.result.differences.append(
                    f"call {self.result.calls.total()} {name} {words!r:.300}\n  real      {there!r:.300}\n  "
                    f"simulated {here!r:.300}")
        self._waiting = []

    def end(self) -> Comparison:
        """Compare what was published and what is stored."""
        self._ask_real()
        self.result.messages = _compare_messages(self._listeners, self.result)
        self.result.keys = _compare_states(self._real, self._simulated, self.result)
        self.result.differences += [f"not simulated: {one}" for one in self._server.unknown]
        self.close()
        return self.result

    def close(self) -> None:
        self._real.close()
        self._listeners[0].close()


def compare(port: int, seed: int, calls: int) -> Comparison:
    """Make so many calls of the Redis server on this port, which must be empty, and of a simulated one."""
    comparer = Comparer(port)
    source = RandomCalls(seed, comparer.look, comparer.ask)
    for words in (*source.first(), ("SET", f"{PREFIX}keys.version", 7)):
        comparer.ask(*words)
    for _ in range(calls):
        comparer.ask(*source.next())
    return comparer.end()


def name_of(words: Sequence[Word]) -> str:
    return NAMES.get(str(words[1]), "EVALSHA") if words[0] == "EVALSHA" and len(words) > 1 else str(words[0])


def is_same(name: str, there: Any, here: Any) -> bool:
    if isinstance(there, ReplyError) or isinstance(here, ReplyError):
        return isinstance(there, ReplyError) and isinstance(here, ReplyError) and same_refusal(str(there), str(here))
    if name == "tokens":
        return bool(there[0] == here[0] and math.isclose(float(there[1]), float(here[1]), abs_tol=SLACK / 1000))
    if name in UNORDERED and isinstance(there, list) and isinstance(here, list):
        if name == "keys_load":
            return there[0] == here[0] and sorted(there[1]) == sorted(here[1])
        return sorted(there) == sorted(here)
    return bool(there == here)


def same_refusal(there: str, here: str) -> bool:
    """The words of an error; where a script failed, Redis also says in which line."""
    return there.partition(" script: ")[0] == here.partition(" script: ")[0]


def _compare_messages(listeners: tuple[Link, Link], result: Comparison) -> int:
    """Everything that was published, in order."""
    read: list[list[Any]] = []
    for listener in listeners:
        listener.send(pack_command(("PING",)))
        messages = []
        while (message := listener.read())[0] != b"pong":
            messages.append(message)
        read.append(messages)
    there, here = read
    result.differences += [f"message {number}: real {a!r:.200}, simulated {b!r:.200}"
                           for number, (a, b) in enumerate(zip(there, here, strict=False)) if a != b][:5]
    if len(there) != len(here):
        result.differences.append(f"the real server has published {len(there)} messages, the simulated {len(here)}")
    return len(there)


READ = {
    b"string": lambda link, key: link.ask("GET", key),
    b"hash": lambda link, key: (lambda rows: dict(zip(rows[::2], rows[1::2], strict=True)))(link.ask("HGETALL", key)),
    b"set": lambda link, key: sorted(link.ask("SMEMBERS", key)),
    b"zset": lambda link, key: link.ask("ZRANGE", key, 0, -1, "WITHSCORES"),
    b"stream": lambda link, key: link.ask("XRANGE", key, "-", "+"),
}
"""How the value of a key is read, by its type."""


def _state(link: Link) -> dict[bytes, tuple[Any, ...]]:
    state = {}
    for key in link.ask("KEYS", "*"):
        kind = link.ask("TYPE", key)
        value = READ[kind](link, key)
        if key.startswith(PREFIX.encode() + b"tokens:"):
            value = value[b"left"].split(b".")[0]  # the rest depends on the clock
        state[key] = kind, value, link.ask("PTTL", key)
    return state


def _compare_states(real: Link, simulated: Link, result: Comparison) -> int:
    there, here = _state(real), _state(simulated)
    for key in sorted(there.keys() | here.keys()):
        one, other = there.get(key), here.get(key)
        if one is None or other is None or one[:2] != other[:2] or abs(one[2] - other[2]) > SLACK:
            result.differences.append(f"key {key!r}:\n  real      {one!r:.300}\n  simulated {other!r:.300}")
    return len(there)
