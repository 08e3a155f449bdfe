"""The keys of a simulated Redis: typed values, times at which they expire, and what the disk has not got yet."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import TypeVar

from .redis_replies import WRONG_TYPE, RedisFailure


class Hash(dict[bytes, bytes]):
    """Fields and values, in the order in which fields were set first."""


class Members(dict[bytes, None]):
    """A set, in the order in which its members were added."""


class SortedSet:
    """Members by score; members of one score are in the order of their bytes."""

    def __init__(self, scores: dict[bytes, float] | None = None) -> None:
        self.scores = scores or {}
        self._order = sorted((score, member) for member, score in self.scores.items())

    def put(self, member: bytes, score: float) -> None:
        self.remove(member)
        self.scores[member] = score
        insort(self._order, (score, member))

    def remove(self, member: bytes) -> bool:
        score = self.scores.pop(member, None)
        if score is None:
            return False
        del self._order[bisect_left(self._order, (score, member))]
        return True

    @property
    def members(self) -> list[bytes]:
        return [member for _, member in self._order]

    def within(self, is_above: Callable[[float], bool], is_below: Callable[[float], bool]) -> list[bytes]:
        return [member for score, member in self._order if is_above(score) and is_below(score)]

    def __len__(self) -> int:
        return len(self.scores)


EntryId = tuple[int, int]


class Stream:
    """Entries by their ids, which only grow."""

    def __init__(self) -> None:
        self.ids: list[EntryId] = []
        self.entries: list[list[bytes]] = []

    @property
    def last(self) -> EntryId:
        return self.ids[-1] if self.ids else (0, 0)

    def add(self, entry_id: EntryId, fields: list[bytes]) -> None:
        self.ids.append(entry_id)
        self.entries.append(fields)

    def between(self, low: EntryId, high: EntryId) -> Iterator[tuple[EntryId, list[bytes]]]:
        for at in range(bisect_left(self.ids, low), len(self.ids)):
            if self.ids[at] > high:
                return
            yield self.ids[at], self.entries[at]

    def copy(self) -> "Stream":
        made = Stream()
        made.ids, made.entries = self.ids[:], self.entries[:]
        return made


Value = bytes | Hash | Members | SortedSet | Stream
NAMES: dict[type, bytes] = {bytes: b"string", Hash: b"hash", Members: b"set", SortedSet: b"zset", Stream: b"stream"}
Kind = TypeVar("Kind", bytes, Hash, Members, SortedSet, Stream)


class Keyspace:
    """All keys; `clock` says the time in seconds.

    The disk has everything up to the last full second (`appendfsync everysec`): of each key that was changed since,
    the value of then is remembered.
    """

    def __init__(self, clock: Callable[[], float], *, always: bool = False) -> None:
        self._clock = clock
        self._always = always
        self._values: dict[bytes, Value] = {}
        self._expiry: dict[bytes, int] = {}
        self._on_disk: dict[bytes, tuple[Value | None, int | None]] = {}
        """The keys that were changed since the disk was written, as the disk has them."""
        self._synced_second = int(clock())

    @property
    def milliseconds(self) -> int:
        return int(self._clock() * 1000)

    @property
    def microseconds(self) -> int:
        return round(self._clock() * 1_000_000)

    # -- reading --------------------------------------------------------------------------------------------------

    def look(self, key: bytes) -> Value | None:
        until = self._expiry.get(key)
        if until is not None and until < self.milliseconds:
            self.remove(key)
        return self._values.get(key)

    def read(self, key: bytes, kind: type[Kind]) -> Kind | None:
        """The value of a key; raises `RedisFailure` if it is of another kind."""
        value = self.look(key)
        if value is not None and not isinstance(value, kind):
            raise RedisFailure(WRONG_TYPE)
        return value

    def all_keys(self) -> list[bytes]:
        return [key for key in list(self._values) if self.look(key) is not None]

    def expires_at(self, key: bytes) -> int | None:
        """In milliseconds."""
        return self._expiry.get(key)

    # -- writing --------------------------------------------------------------------------------------------------

    def change(self, key: bytes, kind: type[Kind]) -> Kind:
        """The value of a key, to be changed; an empty one if there is none. Call `prune` if it may become empty."""
        value = self.read(key, kind)
        self._keep(key)
        if value is None:
            value = kind()
            self._values[key] = value
        return value

    def set(self, key: bytes, value: bytes) -> None:
        """A string; the key does not expire any more."""
        self._keep(key)
        self._values[key] = value
        self._expiry.pop(key, None)

    def replace(self, key: bytes, value: bytes) -> None:
        """A string; the key expires when it would have."""
        self._keep(key)
        self._values[key] = value

    def expire(self, key: bytes, at: int | None) -> None:
        self._keep(key)
        if at is None:
            self._expiry.pop(key, None)
        else:
            self._expiry[key] = at

    def remove(self, key: bytes) -> bool:
        if key not in self._values:
            return False
        self._keep(key)
        del self._values[key]
        self._expiry.pop(key, None)
        return True

    def prune(self, key: bytes) -> None:
        """Remove a key whose last member has gone."""
        if not self._values.get(key):
            self.remove(key)

    def clear(self) -> None:
        for key in list(self._values):
            self.remove(key)

    # -- the disk -------------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """The disk has everything."""
        self._on_disk.clear()
        self._synced_second = int(self._clock())

    def _keep(self, key: bytes) -> None:
        if self._always:
            return
        if int(self._clock()) != self._synced_second:
            self.sync()
        if key not in self._on_disk:
            self._on_disk[key] = _copied(self._values.get(key)), self._expiry.get(key)

    def lose_unsynced(self) -> int:
        """Go back to what the disk has; return how many keys that changes."""
        if int(self._clock()) != self._synced_second:
            self.sync()
        lost = len(self._on_disk)
        for key, (value, until) in self._on_disk.items():
            self._values.pop(key, None)
            self._expiry.pop(key, None)
            if value is not None:
                self._values[key] = value
            if until is not None:
                self._expiry[key] = until
        self._on_disk.clear()
        return lost


def _copied(value: Value | None) -> Value | None:
    match value:
        case Hash():
            return Hash(value)
        case Members():
            return Members(value)
        case SortedSet():
            return SortedSet(dict(value.scores))
        case Stream():
            return value.copy()
    return value
