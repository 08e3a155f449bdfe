"""The store of resources, responses and keys in Redis, which several servers share."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gateway.errors import Conflict, Invalid, NotFound, OutcomeUnknown, Overloaded
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import (
    Amendment,
    Clock,
    KeyChange,
    Keys,
    KeyUse,
    Ranking,
    Resource,
    with_use,
)
from gateway.quotas import QuotaName, Quotas, StoreTally
from gateway.storage.redis import Command, RedisUnreachable, SharedRedis
from gateway.storage.sealing import UNSEALED, Seal

from .key_tables import decode_key, encode_key
from .memory import DEFAULT_MAX_RESOURCES, index_terms, kinds_by_owner, stored_size, too_many

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Resource).decode
COUNTS: tuple[QuotaName, ...] = ("resources", "stored_bytes")
SEPARATOR = "\0"
"""Separates the parts of a key, each of which may have any other character."""


def limit_argument(most: int | None) -> str | int:
    """A limit as an argument of a script."""
    return "" if most is None else most


class RedisResources:
    """Each change is one call of a script; a resource is stored without its ordinal, which the script assigns.

    In a cluster, all resources of an owner are in one partition.
    """

    def __init__(
        self,
        redis: SharedRedis,
        clock: Clock,
        most: Callable[[], int] = lambda: DEFAULT_MAX_RESOURCES,
        seal: Seal = UNSEALED,
        tallies: Sequence[StoreTally] | None = None,
    ) -> None:
        self._tallies = tallies or [Quotas()] * len(redis.parts)
        """What the owners have, by the part of Redis that has it."""
        self._redis = redis
        self._clock = clock
        self._most = most
        self._seal = seal

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = None, parent: str = "",
        resource_id: str | None = None, most: int | None = None, most_below: int | None = None,
    ) -> Resource:
        now, resource_id = self._clock(), resource_id or random_id(kind)
        made = Resource(
            kind=kind, resource_id=resource_id, owner=owner, ordinal=0, version=1, created_at=now, updated_at=now,
            body=body, secrets=secrets or {}, parent=parent,
        )
        record = self._written(made)
        outcome = await self._change(
            owner, "shelve", kind, resource_id, owner, parent, self._most(), record, stored_size(made),
            limit_argument(most), limit_argument(most_below), *self._bounds(owner), *sorted(index_terms(made)),
        )
        if outcome == b"taken":
            raise Conflict(f"there is a {kind} '{resource_id}' already")
        if outcome in (b"many", b"below"):
            raise too_many(kind, (most if outcome == b"many" else most_below) or 0)
        self._must_have_room(outcome)
        ordinal, *kept = outcome
        self._note(owner, ordinal, *kept)
        return self._read(ordinal, record)

    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = None) -> Resource:
        ordinal, newest = await self._find(kind, owner, resource_id)
        if version is not None and not 1 <= version <= newest:
            raise NotFound(f"{kind} '{resource_id}' has no version {version}; it has {newest}")
        return (await self._versions(kind, owner, resource_id, ordinal, [version or newest]))[0]

    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        ordinal, newest = await self._find(kind, owner, resource_id)
        return tuple(await self._versions(kind, owner, resource_id, ordinal, range(1, newest + 1)))

    async def list(
        self, kind: str, owner: str, *, parent: str | None = None, before: int | None = None, after: int | None = None,
        limit: int = 50, archived: bool = False, oldest_first: bool = False,
    ) -> Sequence[Resource]:
        words = [kind, owner] if parent is None else [kind, owner, parent]
        shelf = f"{'all' if archived else 'live'}:{SEPARATOR.join(words)}"
        low, high = "-inf" if after is None else f"({after}", "+inf" if before is None else f"({before}"
        rows = await self._redis.part_of(owner).run_read_script(
            "shelf", shelf, low, high, limit, "" if oldest_first else "REV", kind)
        return [self._read(ordinal, record) for ordinal, record in rows]

    async def owners(self) -> Mapping[str, frozenset[str]]:
        found = [key.split(SEPARATOR) async for key in self._redis.scan("all")]
        return kinds_by_owner((words[0], words[1]) for words in found if len(words) == 2)  # others: of one parent

    async def kinds_in_use(self, owner: str, kinds: Collection[str]) -> frozenset[str]:
        asked, part = [*kinds], self._redis.part_of(owner)
        lists = [("EXISTS", part.key("live", f"{kind}{SEPARATOR}{owner}")) for kind in asked]
        return frozenset(kind for kind, count in zip(asked, await part.read_all(lists), strict=True) if count)

    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        while True:
            seen = await self.get(kind, owner, resource_id)
            if expected not in (None, seen.version):
                raise Conflict(f"{kind} '{resource_id}' is at version {seen.version}, not {expected}")
            changed = replace(
                seen, version=seen.version + 1, body=body, updated_at=self._clock(),
                secrets=seen.secrets if secrets is None else secrets,
            )
            if await self._revised(seen, changed):
                return self._read(seen.ordinal, self._written(changed))

    async def amend(self, kind: str, owner: str, resource_id: str, amendment: Amendment) -> Resource:
        while True:
            ordinal, newest = await self._find(kind, owner, resource_id)
            [[record]] = await self._redis.part_of(owner).read_all([
                ("HMGET", self._key(kind, owner, resource_id), newest)])
            if record is None:
                continue  # it was deleted, or there is a later version
            old = self._read(ordinal, record)
            new = replace(old, body=amendment(old.body))
            weight = stored_size(new) - stored_size(old)
            written = self._written(new)
            if await self._change(owner, "amend", kind, resource_id, newest, record, written, weight) == b"ok":
                return new

    async def with_terms(self, kind: str, owner: str, terms: Collection[str]) -> Sequence[Resource]:
        rows = await self._indexed("with_terms", kind, owner, *sorted(terms))
        return [self._read(ordinal, record) for ordinal, record in rows]

    async def ranked(
        self, kind: str, owner: str, terms: Collection[str], *, common: int, limit: int, offset: int = 0,
    ) -> Ranking:
        number, rows = await self._indexed("ranked", kind, owner, common, offset, limit, *sorted(terms))
        return Ranking(terms=number, found=[(self._read(ordinal, record), count) for ordinal, record, count in rows])

    async def _indexed(self, script: str, kind: str, owner: str, *given: str | int) -> Any:
        """The reply of a script that reads terms; resources from before there were terms get theirs first."""
        part = self._redis.part_of(owner)
        reply = await part.run_read_script(script, kind, owner, *given)
        if reply != b"unindexed":
            return reply
        for one in await self.list(kind, owner, limit=DEFAULT_MAX_RESOURCES):
            await self._change(owner, "index", kind, owner, one.resource_id, one.version, *sorted(index_terms(one)))
        await self._change(owner, "index", kind, owner)
        return await part.run_read_script(script, kind, owner, *given)

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        while True:
            seen = await self.get(kind, owner, resource_id)
            if seen.archived_at is not None:
                return seen
            changed = replace(seen, archived_at=self._clock())
            if await self._revised(seen, changed):
                return changed

    async def _revised(self, seen: Resource, changed: Resource) -> bool:
        """Whether the change is stored; if not, the resource was changed meanwhile, and has to be read again."""
        has = index_terms(changed)
        outcome, *kept = await self._change(
            seen.owner, "revise", seen.kind, seen.resource_id, seen.version, changed.version, self._most(),
            self._written(changed), stored_size(changed), *self._bounds(seen.owner),
            *(("terms", *sorted(has)) if has != index_terms(seen) else ()),
        )
        self._must_have_room(outcome)
        if kept:
            self._note(seen.owner, outcome, *kept)
        return bool(outcome == b"ok")

    def _bounds(self, owner: str) -> tuple[str | int, str | int]:
        """How many resources and bytes the owner may have, as arguments of a script."""
        tally = self._tally_of(owner)
        return limit_argument(tally.limit_of(owner, "resources")), limit_argument(tally.limit_of(owner, "stored_bytes"))

    def _tally_of(self, owner: str) -> StoreTally:
        return self._tallies[self._redis.number_of(owner)]

    def _note(self, owner: str, outcome: object, *kept: int) -> None:
        """Keep how much the owner has; raises `RateLimited` if the script has refused the change because of that."""
        tally = self._tally_of(owner)
        for counted in COUNTS:
            if outcome == counted.encode():
                tally.set_usage(owner, counted, kept[0])
                raise tally.limit_error(owner, counted)
        tally.set_usage(owner, "resources", kept[0])
        tally.set_usage(owner, "stored_bytes", kept[1])

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        if not await self._change(owner, "unshelve", kind, resource_id, owner):
            raise NotFound(f"there is no {kind} '{resource_id}'")

    async def _change(self, whose: str, script: str, *given: str | bytes | int) -> Any:
        """Run a script once, where the resources of this owner are; raises `OutcomeUnknown` if its reply is lost."""
        try:
            return await self._redis.part_of(whose).run_script(script, *given)
        except RedisUnreachable as error:
            if not error.was_sent:
                raise
            raise OutcomeUnknown(f"it is not known whether this was done: {error.message}") from None

    def _must_have_room(self, outcome: object) -> None:
        if outcome == b"full":
            raise Overloaded(f"the server keeps {self._most()} resources and versions of them; delete some first")

    async def _find(self, kind: str, owner: str, resource_id: str) -> tuple[int, int]:
        """The ordinal of a resource and its newest version."""
        command = ("HMGET", self._key(kind, owner, resource_id), "owner", "ordinal", "newest")
        whose, ordinal, newest = (await self._redis.part_of(owner).read_all([command]))[0]
        if whose is None or whose.decode(errors="surrogatepass") != owner:
            raise NotFound(f"there is no {kind} '{resource_id}'")
        return int(ordinal), int(newest)

    async def _versions(
        self, kind: str, owner: str, resource_id: str, ordinal: int, versions: Sequence[int],
    ) -> Sequence[Resource]:
        command: Command = ("HMGET", self._key(kind, owner, resource_id), *versions)
        records = (await self._redis.part_of(owner).read_all([command]))[0]
        if None in records:
            raise NotFound(f"there is no {kind} '{resource_id}'")
        return [self._read(ordinal, record) for record in records]

    def _key(self, kind: str, owner: str, resource_id: str) -> str:
        return self._redis.part_of(owner).key("resource", f"{kind}{SEPARATOR}{resource_id}")

    def _written(self, one: Resource) -> bytes:
        try:
            return _encode(replace(one, secrets=self._seal.seal(one.secrets)) if one.secrets else one)
        except UnicodeEncodeError:
            raise Invalid(f"the {one.kind} has characters that are not valid text, and cannot be stored") from None

    def _read(self, ordinal: int | bytes, record: bytes) -> Resource:
        one = _decode(record)
        return replace(one, ordinal=int(ordinal), secrets=self._seal.unseal(one.secrets))


class RedisKeyTable:
    """Keys in Redis: servers see the changes of the others by their version. All keys are in one partition."""

    def __init__(self, redis: SharedRedis) -> None:
        self._redis = redis.part_of("keys")

    async def version(self) -> int:
        return int((await self._redis.read_all([("GET", self._redis.key("keys.version"))]))[0] or 0)

    async def load(self) -> tuple[int, Keys]:
        version, rows = await self._redis.run_read_script("keys_load")
        return int(version), [with_use(decode_key(record), _use(use)) for record, use in rows]

    async def change(self, version: int, change: KeyChange) -> bool:
        put = [word for key in change.put for word in (key.hash, encode_key(key))]
        removed = [key.hash for key in change.remove]
        return bool(await self._redis.run_script("keys_change", version, len(removed), *removed, *put))

    async def uses(self, hashes: Iterable[str]) -> dict[str, KeyUse]:
        if not (wanted := tuple(hashes)):
            return {}
        found = (await self._redis.read_all([("HMGET", self._redis.key("keys.used"), *wanted)]))[0]
        return {one: use for one, word in zip(wanted, found, strict=True) if (use := _use(word)) is not None}

    async def touch(self, uses: Mapping[str, KeyUse]) -> None:
        words = [word for one, use in uses.items() for word in (one, repr(use.at), use.address)]
        await self._redis.run_script("keys_used", *words)

    async def close(self) -> None:
        """The log closes the connection."""


class BlockingKeyTable:
    """The keys in Redis, for callers without an event loop; each call has a connection of its own."""

    def __init__(self, redis: Callable[[], SharedRedis]) -> None:
        self._redis = redis

    def load(self) -> tuple[int, Keys]:
        return asyncio.run(self._use_table(RedisKeyTable.load))

    def change(self, version: int, change: KeyChange) -> bool:
        return asyncio.run(self._use_table(lambda table: table.change(version, change)))

    def close(self) -> None:
        """Nothing is open between two calls."""

    async def _use_table(self, ask: Callable[[RedisKeyTable], Awaitable[T]]) -> T:
        redis = self._redis()
        await redis.open()
        try:
            return await ask(RedisKeyTable(redis))
        finally:
            await redis.close()


def _use(word: bytes | None) -> KeyUse | None:
    if not word:
        return None
    at, _, address = word.decode(errors="replace").partition(" ")
    return KeyUse(float(at), address)
