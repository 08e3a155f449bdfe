"""The store of resources in SQLite: every version of every resource is a row."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from gateway.errors import Conflict, Invalid, NotFound, Overloaded
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import Amendment, Clock, Ranking, Resource
from gateway.quotas import Quotas
from gateway.storage.sealing import UNSEALED, Seal
from gateway.storage.sqlite import (
    IN_USE,
    Database,
    Work,
    add_terms,
    add_to_counter,
    ordinals_of,
    records_with_terms,
    remove_terms,
    term_counts,
)

from .memory import DEFAULT_MAX_RESOURCES, counting_terms, index_terms, kinds_by_owner, stored_size, too_many

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Resource).decode

ORDINAL, KEPT = "resources.ordinal", "resources.kept"
"""The counters of the last ordinal and of all versions."""

SELECT = "SELECT record FROM resources WHERE"
COUNT = (
    "SELECT count(*) FROM resources INDEXED BY resources_in_use_by_parent "
    "WHERE newest AND archived_at IS NULL AND kind = ? AND owner = ? AND parent = ?"
)
ANY_IN_USE = "SELECT 1 FROM resources WHERE newest AND archived_at IS NULL AND kind = ? AND owner = ? LIMIT 1"
OWNERS = "SELECT DISTINCT kind, owner FROM resources INDEXED BY resources_by_owner WHERE newest"
REMOVE = """
    DELETE FROM resources WHERE (kind, resource_id) IN (
        WITH RECURSIVE gone (kind, resource_id) AS (
            VALUES (?, ?)
            UNION
            SELECT below.kind, below.resource_id
            FROM gone CROSS JOIN resources AS below ON below.parent = gone.resource_id AND below.newest
        )
        SELECT * FROM gone
    ) RETURNING record
"""
"""Deletes a resource and, recursively, all that belongs to it; cycles end."""

LARGEST = 2**63 - 1
"""SQLite has no larger integers."""


class SqliteResources:
    """A change returns when it is committed; only committed resources are shown."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        most: Callable[[], int] = lambda: DEFAULT_MAX_RESOURCES,
        seal: Seal = UNSEALED,
        tally: Quotas | None = None,
    ) -> None:
        self._tally = tally or Quotas()
        self._database = database
        self._clock = clock
        self._most = most
        self._seal = seal

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = None, parent: str = "",
        resource_id: str | None = None, most: int | None = None, most_below: int | None = None,
    ) -> Resource:
        resource_id = resource_id or random_id(kind)
        made = Resource(
            kind=kind, resource_id=resource_id, owner=owner, ordinal=0, version=1, created_at=0.0, updated_at=0.0,
            body=body, parent=parent,
        )

        def make(file: sqlite3.Connection) -> Resource:
            now = self._clock()
            if _newest(file, kind, resource_id) is not None:
                raise Conflict(f"there is a {kind} '{resource_id}' already")
            for room, among in ((most, None), (most_below, parent)):
                if room is not None and _in_use(file, kind, owner, among) >= room:
                    raise too_many(kind, room)
            self._make_room(file)
            return _put(file, None, replace(
                made, ordinal=add_to_counter(file, ORDINAL, 1), created_at=now, updated_at=now,
                secrets=self._closed(kind, secrets or {}),
            ))

        return self._opened(await self._counted(made, make))

    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = None) -> Resource:
        def read(file: sqlite3.Connection) -> Resource:
            newest = _find(file, kind, owner, resource_id)
            if version is None:
                return newest
            if not 1 <= version <= newest.version:
                raise NotFound(f"{kind} '{resource_id}' has no version {version}; it has {newest.version}")
            return next(_rows(file, "kind = ? AND resource_id = ? AND version = ?", kind, resource_id, version))

        return self._opened(await self._database.read(read))

    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        def read(file: sqlite3.Connection) -> Sequence[Resource]:
            _find(file, kind, owner, resource_id)
            return tuple(_rows(file, "kind = ? AND resource_id = ? ORDER BY version", kind, resource_id))

        return tuple(map(self._opened, await self._database.read(read)))

    async def list(
        self, kind: str, owner: str, *, parent: str | None = None, before: int | None = None, after: int | None = None,
        limit: int = 50, archived: bool = False, oldest_first: bool = False,
    ) -> Sequence[Resource]:
        if not _is_text(kind, owner, parent or ""):
            return []
        query, given = page(
            kind, owner, parent=parent, before=before, after=after, limit=limit, archived=archived,
            oldest_first=oldest_first,
        )
        return [self._opened(one) for one in await self._database.read(lambda file: [*_rows(file, query, *given)])]

    async def owners(self) -> Mapping[str, frozenset[str]]:
        return kinds_by_owner(await self._database.read(lambda file: file.execute(OWNERS).fetchall()))

    async def kinds_in_use(self, owner: str, kinds: Collection[str]) -> frozenset[str]:
        def read(file: sqlite3.Connection) -> frozenset[str]:
            return frozenset(kind for kind in kinds if file.execute(ANY_IN_USE, (kind, owner)).fetchone())

        return await self._database.read(read) if _is_text(owner) else frozenset()

    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        def change(file: sqlite3.Connection) -> Resource:
            newest = _find(file, kind, owner, resource_id)
            if expected not in (None, newest.version):
                raise Conflict(f"{kind} '{resource_id}' is at version {newest.version}, not {expected}")
            self._make_room(file)
            file.execute(
                "UPDATE resources SET newest = 0 WHERE kind = ? AND resource_id = ? AND version = ?",
                (kind, resource_id, newest.version),
            )
            return _put(file, newest, replace(
                newest, version=newest.version + 1, body=body, updated_at=self._clock(),
                secrets=newest.secrets if secrets is None else self._closed(kind, secrets),
            ))

        changed = Resource(
            kind=kind, resource_id=resource_id, owner=owner, ordinal=0, version=2, created_at=0.0, updated_at=0.0,
            body=body,
        )
        return self._opened(await self._counted(changed, change))

    async def amend(self, kind: str, owner: str, resource_id: str, amendment: Amendment) -> Resource:
        def change(file: sqlite3.Connection) -> tuple[Resource, Resource]:
            newest = _find(file, kind, owner, resource_id)
            return newest, _put(file, newest, replace(newest, body=amendment(newest.body)))

        old, new = await self._database.write(change)
        self._tally.add(owner, stored_bytes=stored_size(new) - stored_size(old))
        return self._opened(new)

    async def with_terms(self, kind: str, owner: str, terms: Collection[str]) -> Sequence[Resource]:
        if not _is_text(kind, owner, *terms):
            return []
        found = await self._database.read(lambda file: records_with_terms(file, kind, owner, terms))
        return [self._opened(_decode(record)) for record in found]

    async def ranked(
        self, kind: str, owner: str, terms: Collection[str], *, common: int, limit: int, offset: int = 0,
    ) -> Ranking:
        known = [term for term in terms if _is_text(kind, owner, term)]

        def read(file: sqlite3.Connection) -> tuple[int, list[tuple[Resource, int]]]:
            counts = term_counts(file, kind, owner, known, most=common + 1)
            counting, had = counting_terms(dict.fromkeys(terms, 0) | counts, common), Counter[int]()
            for term in counting:
                if counts.get(term):
                    had.update(ordinals_of(file, kind, owner, term))
            best = sorted(had.items(), key=lambda row: (-row[1], -row[0]))[offset:offset + limit]
            return len(counting), [
                (one, number) for ordinal, number in best
                for one in _at(file, kind, owner, ordinal)]

        number, found = await self._database.read(read)
        return Ranking(terms=number, found=[(self._opened(one), count) for one, count in found])

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        def put_away(file: sqlite3.Connection) -> Resource:
            newest = _find(file, kind, owner, resource_id)
            if newest.archived_at is not None:
                return newest
            return _put(file, newest, replace(newest, archived_at=self._clock()))

        return self._opened(await self._database.write(put_away))

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        def remove(file: sqlite3.Connection) -> list[tuple[str, int]]:
            _find(file, kind, owner, resource_id)
            gone = [_decode(record) for (record,) in file.execute(REMOVE, (kind, resource_id))]
            add_to_counter(file, KEPT, -len(gone))
            gone.sort(key=lambda one: one.version)
            for newest in {(one.kind, one.resource_id): one for one in gone}.values():
                _index(file, newest, None)
            return [(one.owner, stored_size(one)) for one in gone]

        for whose, weight in await self._database.write(remove):
            self._tally.add(whose, resources=-1, stored_bytes=-weight)

    async def recount(self) -> None:
        """Count how much each owner has, when the server starts."""
        def weigh(file: sqlite3.Connection) -> dict[str, list[int]]:
            found: dict[str, list[int]] = {}
            for one in _rows(file, "1"):
                kept = found.setdefault(one.owner, [0, 0])
                kept[0] += 1
                kept[1] += stored_size(one)
            return found

        for owner, (number, size) in (await self._database.read(weigh)).items():
            self._tally.add(owner, resources=number, stored_bytes=size)

    async def _counted(self, one: Resource, work: Work[Resource]) -> Resource:
        """Write a resource or a version; it is counted before it is written, and not any more if that fails."""
        owner, weight, tally = one.owner, stored_size(one), self._tally
        tally.check(owner, "resources")
        tally.check(owner, "stored_bytes", weight)
        tally.add(owner, resources=1, stored_bytes=weight)

        def settle(done: asyncio.Future[Resource]) -> None:
            if done.cancelled() or done.exception() is not None:
                tally.add(owner, resources=-1, stored_bytes=-weight)

        writing = asyncio.ensure_future(self._database.write(work))
        writing.add_done_callback(settle)
        return await asyncio.shield(writing)  # a caller that is cancelled does not stop it

    def _closed(self, kind: str, secrets: dict[str, str]) -> dict[str, str]:
        try:
            return self._seal.seal(secrets)
        except UnicodeEncodeError:
            raise Invalid(f"the {kind} has characters that are not valid text, and cannot be stored") from None

    def _opened(self, one: Resource) -> Resource:
        return replace(one, secrets=self._seal.unseal(one.secrets)) if one.secrets else one

    def _make_room(self, file: sqlite3.Connection) -> None:
        if add_to_counter(file, KEPT) >= self._most():
            raise Overloaded(f"the server keeps {self._most()} resources and versions of them; delete some first")
        add_to_counter(file, KEPT, 1)


# -- rows -------------------------------------------------------------------------------------------------------------

def page(
    kind: str, owner: str, *, parent: str | None = None, before: int | None = None, after: int | None = None,
    limit: int = 50, archived: bool = False, oldest_first: bool = False,
) -> tuple[str, list[object]]:
    """The query of one page of a list, and its arguments; an index has every page in order."""
    bounds = {
        "kind = ?": kind, "owner = ?": owner, "parent = ?": parent, "ordinal < ?": _within(before),
        "ordinal > ?": _within(after),
    }
    asked = {words: value for words, value in bounds.items() if value is not None}
    words = ["newest", *([] if archived else ["archived_at IS NULL"]), *asked]
    order = "ASC" if oldest_first else "DESC"
    return f"{' AND '.join(words)} ORDER BY ordinal {order} LIMIT ?", [*asked.values(), limit]


def _rows(file: sqlite3.Connection, query: str, *given: object) -> Iterator[Resource]:
    return (_decode(record) for (record,) in file.execute(f"{SELECT} {query}", given))


def _at(file: sqlite3.Connection, kind: str, owner: str, ordinal: int) -> Iterator[Resource]:
    query, given = page(kind, owner, after=ordinal - 1, before=ordinal + 1, limit=1)
    return _rows(file, query, *given)


def _newest(file: sqlite3.Connection, kind: str, resource_id: str) -> Resource | None:
    query = "kind = ? AND resource_id = ? ORDER BY version DESC LIMIT 1"
    return next(_rows(file, query, kind, resource_id), None) if _is_text(kind, resource_id) else None


def _in_use(file: sqlite3.Connection, kind: str, owner: str, parent: str | None) -> int:
    """How many resources there are of a kind, or with a parent, that are not archived."""
    if parent is None:
        return add_to_counter(file, f"{IN_USE}{kind}/{owner}")
    return int(file.execute(COUNT, (kind, owner, parent)).fetchone()[0])


def _index(file: sqlite3.Connection, old: Resource | None, new: Resource | None) -> None:
    """Count a resource that is new, archived or gone, and keep the terms by which it is found."""
    one = new or old
    assert one is not None, "there is a resource before the change, or after it"
    number = sum(change for state, change in ((old, -1), (new, 1)) if state is not None and state.archived_at is None)
    add_to_counter(file, f"{IN_USE}{one.kind}/{one.owner}", number)
    had, has = index_terms(old), index_terms(new)
    if had != has:
        remove_terms(file, one.kind, one.owner, one.ordinal, had)
        add_terms(file, one.kind, one.owner, one.ordinal, has)


def _find(file: sqlite3.Connection, kind: str, owner: str, resource_id: str) -> Resource:
    newest = _newest(file, kind, resource_id)
    if newest is None or newest.owner != owner:
        raise NotFound(f"there is no {kind} '{resource_id}'")
    return newest


def _put(file: sqlite3.Connection, old: Resource | None, one: Resource) -> Resource:
    """Write the newest version, after or in place of the old one; return it as it will be read."""
    try:
        record = _encode(one)
    except UnicodeEncodeError:
        raise Invalid(f"the {one.kind} has characters that are not valid text, and cannot be stored") from None
    file.execute(
        "INSERT OR REPLACE INTO resources (kind, resource_id, version, ordinal, owner, parent, newest, archived_at, "
        "record) VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?)",
        (one.kind, one.resource_id, one.version, one.ordinal, one.owner, one.parent, one.archived_at, record),
    )
    _index(file, old, one)
    return _decode(record)


def _is_text(*words: str) -> bool:
    """Whether SQLite can store the string: strings that are not valid Unicode it cannot."""
    try:
        "".join(words).encode()
    except UnicodeEncodeError:
        return False
    return True


def _within(place: int | None) -> int | None:
    return None if place is None else max(-LARGEST, min(place, LARGEST))
