"""Moves everything that servers have stored in one Redis to another one: to a cluster, from it, or to other partitions.

The servers are stopped meanwhile. Until the end the target has a format that servers refuse, so that they see all or
nothing of it; a move that was interrupted begins anew. The source is left as it is. The indexes of texts stay behind:
they are built again by the first search of each user.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec
from msgspec import Struct

from gateway.errors import Conflict

from .client import FORMAT, MOVING_FORMAT, RedisClient
from .connection import Command
from .lines import glob_escaped, scan_keys
from .replies import Reply
from .shared import SharedRedis

PAGE = 20
"""How many sessions, resources or responses are moved in one step."""
SEPARATOR = "\0"
COUNTERS = {"ordinal": ("ordinal", "timed"), "answers.count": ("answers.count",),
            "resources.ordinal": ("resources.ordinal",)}
"""Numbers that only grow, and what goes on from the greatest one in each partition; all sessions have their times."""
Fields = dict[bytes, bytes]


class _Times(Struct, frozen=True):
    created_at: float
    updated_at: float


_decode_times = msgspec.json.Decoder(_Times).decode
_decode_labels = msgspec.json.Decoder(list[str] | dict[str, None]).decode
"""Lua writes an empty list as an empty object."""


class StoreCounts(Struct, frozen=True):
    """How much a Redis has."""

    sessions: int
    resources: int
    responses: int
    keys: int


class StoreMove:
    """Copies one kind of data after the other, and compares what has arrived."""

    def __init__(
        self, source: SharedRedis, target: SharedRedis, progress: Callable[[int, int], None] = lambda done, all_: None,
    ) -> None:
        self.source, self.target = source, target
        self._progress = progress

    async def check(self) -> StoreCounts:
        """How much would be moved; raises `Conflict` or `NotFound` if nothing can be moved just now."""
        await self.source.check_has_data()
        await self._check_unused(self.source)
        await self._check_unused(self.target)
        if not await self._may_be_filled():
            raise Conflict(f"{self.target.address.shown} has data of Dragoman; empty it, or name another `?prefix=`")
        return await self._counts()

    async def run(self) -> StoreCounts:
        counts = await self.check()
        await self._clear()
        await self.target.open()
        await self._set_format(MOVING_FORMAT)
        await self._copy(counts)
        await StoreComparison(self.source, self.target).check()
        await self._check_unused(self.source)
        await self._set_format(FORMAT)
        return counts

    async def _copy(self, counts: StoreCounts) -> None:
        done, total = 0, sum(msgspec.structs.astuple(counts))
        for pages in (self._sessions(), self._resources(), self._responses(), self._keys()):
            async for number in pages:
                done += number
                self._progress(min(done, total), total)
        if all(await self._of_all_parts(("GET", "lists"))):
            await self._write({part: [("SET", part.key("lists"), "1")] for part in self.target.parts})
        for counter, names in COUNTERS.items():
            last = max(int(one or 0) for one in await self._of_all_parts(("GET", counter)))
            await self._write({part: [("SET", part.key(name), last) for name in names] for part in self.target.parts})

    async def _of_all_parts(self, command: tuple[str, str]) -> list[Reply]:
        return [(await part.read_all([(command[0], part.key(command[1]))]))[0] for part in self.source.parts]

    async def _counts(self) -> StoreCounts:
        sessions = sum(await self._of_all_parts(("ZCARD", "sessions")))
        responses, resources = sum(await self._of_all_parts(("HLEN", "answers"))), 0
        for kind, owner in await shelves(self.source):
            part = self.source.part_of(owner)
            resources += (await part.read_all([("ZCARD", part.key("all", f"{kind}{SEPARATOR}{owner}"))]))[0]
        return StoreCounts(sessions, resources, responses, len(await stored_keys(self.source)))

    # -- what must be so ------------------------------------------------------------------------------------------

    async def _check_unused(self, redis: SharedRedis) -> None:
        living = set[str]()
        for part in redis.parts:
            [ids] = await part.read_all([("SMEMBERS", part.key("replicas"))])
            names = [one.decode() for one in ids]
            lives = await part.read_all([("EXISTS", part.key("replica", one)) for one in names]) if names else []
            living.update(name for name, is_there in zip(names, lives, strict=True) if is_there)
        if living:
            raise Conflict(f"{len(living)} servers use {redis.address.shown}; stop them all, and wait until "
                           "`dragoman cluster status` lists none")

    async def _may_be_filled(self) -> bool:
        """Whether nothing is there, or the rest of a move that was interrupted."""
        for part in self.target.parts:
            stored, sessions, resources, responses, keys = await part.read_all([
                ("GET", part.key("format")), ("ZCARD", part.key("sessions")), ("GET", part.key("resources.kept")),
                ("HLEN", part.key("answers")), ("HLEN", part.key("keys"))])
            if stored != MOVING_FORMAT.encode() and (sessions or int(resources or 0) or responses or keys):
                return False
        return True

    async def _clear(self) -> None:
        for part in self.target.parts:
            if not any(await part.read_all([("EXISTS", part.key(word)) for word in ("format", "epoch")])):
                continue
            left = list[str]()
            async for key in scan_keys(part, glob_escaped(part.prefix) + "*"):
                left.append(key)
            for start in range(0, len(left), 1000):
                await part.write_all([("UNLINK", key) for key in left[start:start + 1000]])

    async def _set_format(self, stored: str) -> None:
        await self._write({part: [("SET", part.key("format"), stored)] for part in self.target.parts})

    # -- what is moved --------------------------------------------------------------------------------------------

    async def _sessions(self) -> AsyncIterator[int]:
        for part in self.source.parts:
            async for ids in pages_of(part, "sessions"):
                replies = await part.read_all([
                    (command, part.key(word, one)) for one in ids
                    for command, word in (("HGETALL", "s"), ("DUMP", "log"), ("SMEMBERS", "words"))])
                commands = dict[RedisClient, list[Command]]()
                for one, fields, records, words in zip(ids, *(replies[at::3] for at in range(3)), strict=True):
                    there = self.target.part_of(one)
                    commands.setdefault(there, []).extend(_session(there, one, as_dict(fields), records, words))
                await self._write(commands)
                yield len(ids)

    async def _resources(self) -> AsyncIterator[int]:
        for kind, owner in await shelves(self.source):
            shelf, part, there = f"{kind}{SEPARATOR}{owner}", self.source.part_of(owner), self.target.part_of(owner)
            async for ids in pages_of(part, f"all:{shelf}"):
                names = [f"{kind}{SEPARATOR}{one}" for one in ids]
                replies = await part.read_all([command for one, name in zip(ids, names, strict=True) for command in (
                    ("HGETALL", part.key("resource", name)), ("ZSCORE", part.key("live", shelf), one),
                    ("HGET", part.key("weights"), name))])
                rows = zip(ids, *(replies[at::3] for at in range(3)), strict=True)
                await self._write({there: [
                    command for one, fields, place, weight in rows
                    for command in _resource(there, shelf, one, as_dict(fields), place is not None, weight)]})
                yield len(ids)

    async def _responses(self) -> AsyncIterator[int]:
        for part in self.source.parts:
            async for places in pages_of(part, "answers.order"):
                hashes = ("answers", "answers.sizes", "answers.times")
                *stored, scores = await part.read_all([
                    *(("HMGET", part.key(name), *places) for name in hashes),
                    ("ZMSCORE", part.key("answers.order"), *places)])
                commands = dict[RedisClient, list[Command]]()
                for place, score, *values in zip(places, scores, *stored, strict=True):
                    there = self.target.part_of(place)
                    commands.setdefault(there, []).extend([
                        *(("HSET", there.key(name), place, value) for name, value in zip(hashes, values, strict=True)),
                        ("ZADD", there.key("answers.order"), score, place),
                        ("INCRBY", there.key("answers.bytes"), values[1])])
                await self._write(commands)
                yield len(places)

    async def _keys(self) -> AsyncIterator[int]:
        part, there = self.source.part_of("keys"), self.target.part_of("keys")
        keys, used, version = await part.read_all([
            ("HGETALL", part.key("keys")), ("HGETALL", part.key("keys.used")), ("GET", part.key("keys.version"))])
        commands: list[Command] = [("HSET", there.key(name), *rows)
                                   for name, rows in (("keys", keys), ("keys.used", used)) if rows]
        if version is not None:
            await self._write({there: [*commands, ("SET", there.key("keys.version"), version)]})
        yield len(keys) // 2

    async def _write(self, commands: Mapping[RedisClient, Sequence[Command]]) -> None:
        await asyncio.gather(*(part.write_all(one) for part, one in commands.items()))


def _session(
    there: RedisClient, session_id: str, fields: Fields, records: bytes, words: Sequence[bytes],
) -> Iterator[Command]:
    fields.pop(b"indexed", None)
    owner, ordinal, holder = (text(fields[word]) for word in (b"owner", b"ordinal", b"holder"))
    is_in_turn = fields[b"in_turn"] == b"1"
    if not is_in_turn:
        fields[b"holder"] = b""
    yield ("HSET", there.key("s", session_id), *chain.from_iterable(fields.items()))
    yield ("RESTORE", there.key("log", session_id), 0, records)
    yield ("ZADD", there.key("sessions"), ordinal, session_id)
    yield ("ZADD", there.key("owner", owner), ordinal, session_id)
    yield ("HINCRBY", there.key("kept", owner), "bytes", fields.get(b"bytes", b"0"))
    if words:
        yield ("SADD", there.key("words", session_id), *words)
        yield from (("HSET", there.key("places"), word, session_id) for word in words)
    if is_in_turn:  # its server is gone: the first one that starts takes it over
        yield ("ZADD", there.key("open"), ordinal, session_id)
        yield ("SADD", there.key("open", holder), session_id)
        yield ("SADD", there.key("replicas"), holder)
    if b"summary" in fields:
        times = _decode_times(fields[b"summary"])
        yield ("ZADD", there.key("times", owner), repr(times.created_at), session_id)
        size = str(len(owner.encode(errors="surrogatepass")))
        for label in _decode_labels(fields[b"labels"]):
            yield ("ZADD", there.key("createdlist", size, owner, label), ordinal, session_id)
            yield ("ZADD", there.key("updatedlist", size, owner, label), repr(times.updated_at), session_id)


def _resource(
    there: RedisClient, shelf: str, resource_id: str, fields: Fields, is_live: bool, weight: bytes | None,
) -> Iterator[Command]:
    kind, owner = shelf.split(SEPARATOR)
    name, parent, versions = f"{kind}{SEPARATOR}{resource_id}", text(fields[b"parent"]), len(fields) - 4
    yield ("HSET", there.key("resource", name), *chain.from_iterable(fields.items()))
    for state in ("all", "live") if is_live else ("all",):
        yield ("ZADD", there.key(state, shelf), fields[b"ordinal"], resource_id)
        yield ("ZADD", there.key(state, f"{shelf}{SEPARATOR}{parent}"), fields[b"ordinal"], resource_id)
    yield ("INCRBY", there.key("resources.kept"), versions)
    if parent:
        yield ("SADD", there.key("below", parent), name)
    if weight is not None:
        yield ("HSET", there.key("weights"), name, weight)
        yield ("HINCRBY", there.key("kept", owner), "resources", versions)
        yield ("HINCRBY", there.key("kept", owner), "bytes", weight)


class StoreComparison:
    """Reads both stores again, and finds what one has otherwise than the other."""

    def __init__(self, source: SharedRedis, target: SharedRedis) -> None:
        self.source, self.target = source, target

    async def check(self) -> None:
        """Raise `Conflict` if there is a difference."""
        async for found in self._differences():
            raise Conflict(f"{found} is not as it was; nothing can be used there. Were all servers stopped? Try again")

    async def _differences(self) -> AsyncIterator[str]:
        for part in self.source.parts:
            async for ids in pages_of(part, "sessions"):
                ours = await asyncio.gather(*(self._session(part, one) for one in ids))
                theirs = await asyncio.gather(*(self._session(self.target.part_of(one), one) for one in ids))
                for one, left, right in zip(ids, ours, theirs, strict=True):
                    if left != right:
                        yield f"session {one}"
            async for places in pages_of(part, "answers.order"):
                for place in places:
                    there = self.target.part_of(place)
                    was, now = [await one.read_all([("HGET", one.key("answers"), place)]) for one in (part, there)]
                    if was != now:
                        yield "a stored response"
        for kind, owner in await shelves(self.source):
            here, there = self.source.part_of(owner), self.target.part_of(owner)
            async for ids in pages_of(here, f"all:{kind}{SEPARATOR}{owner}"):
                asked = [("resource", f"{kind}{SEPARATOR}{one}") for one in ids]
                left_rows, right_rows = [await one.read_all([("HGETALL", one.key(*words)) for words in asked])
                                         for one in (here, there)]
                for one, left, right in zip(ids, left_rows, right_rows, strict=True):
                    if as_dict(left) != as_dict(right):
                        yield f"{kind} '{one}'"
        if await stored_keys(self.source) != await stored_keys(self.target):
            yield "a key"

    async def _session(self, part: RedisClient, session_id: str) -> tuple[Fields, list[Reply], set[bytes]]:
        fields, words = await part.read_all([
            ("HGETALL", part.key("s", session_id)), ("SMEMBERS", part.key("words", session_id))])
        last, entries = "-", list[Reply]()
        while page := (await part.read_all([("XRANGE", part.key("log", session_id), last, "+", "COUNT", 200)]))[0]:
            entries += page
            last = f"({page[-1][0].decode()}"
        left = {name: value for name, value in as_dict(fields).items() if name not in (b"indexed", b"holder")}
        return left, entries, set(words)


# -- reading ----------------------------------------------------------------------------------------------------------

async def pages_of(part: RedisClient, name: str) -> AsyncIterator[list[str]]:
    """The members of a sorted set, in order."""
    low = "-inf"
    while True:
        [rows] = await part.read_all([
            ("ZRANGE", part.key(name), low, "+inf", "BYSCORE", "LIMIT", 0, PAGE, "WITHSCORES")])
        if not rows:
            return
        yield [text(one) for one in rows[::2]]
        low = f"({text(rows[-1])}"


async def shelves(redis: SharedRedis) -> list[tuple[str, str]]:
    """The kinds of resources, each with an owner that has some."""
    names = {name async for name in redis.scan("all") if name.count(SEPARATOR) == 1}
    return [(kind, owner) for kind, owner in (name.split(SEPARATOR) for name in sorted(names))]


async def stored_keys(redis: SharedRedis) -> Fields:
    part = redis.part_of("keys")
    return as_dict((await part.read_all([("HGETALL", part.key("keys"))]))[0])


def as_dict(rows: Sequence[bytes]) -> Fields:
    return dict(zip(rows[::2], rows[1::2], strict=True))


def text(word: bytes) -> str:
    return word.decode(errors="surrogatepass")
