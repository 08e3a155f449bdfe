"""The store of resources in memory: every version of every resource."""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count

import msgspec
from msgspec.structs import replace

from gateway.errors import Conflict, NotFound, Overloaded
from gateway.ids import random_id
from gateway.json_values import JsonObject
from gateway.ports import Amendment, Clock, Ranking, Resource
from gateway.quotas import Quotas
from gateway.search_terms import terms_of

Versions = list[Resource]
Key = tuple[str, str]
"""Kind and id."""
ListKey = tuple[str, str, str | None]
"""Kind, owner and parent; None as parent means all parents."""

DEFAULT_MAX_RESOURCES = 100_000
_encode = msgspec.json.Encoder().encode


class MemoryResources:
    """Everything in memory, nothing on disk."""

    def __init__(
        self, clock: Clock, most: Callable[[], int] = lambda: DEFAULT_MAX_RESOURCES, tally: Quotas | None = None
    ) -> None:
        self._tally = tally or Quotas()
        self._clock = clock
        self._most = most
        self._count = count(1)
        self._kept = 0
        self._versions: dict[Key, Versions] = {}
        self._order: defaultdict[ListKey, list[tuple[int, str]]] = defaultdict(list)
        self._below: defaultdict[str, set[Key]] = defaultdict(set)
        self._in_use: Counter[ListKey] = Counter()
        """How many resources of a list are not archived."""
        self._places: defaultdict[tuple[str, str, str], dict[int, str]] = defaultdict(dict)
        """By kind, owner and term: the ids of the resources that have the term, by ordinal."""

    async def create(
        self, kind: str, owner: str, body: JsonObject, *, secrets: dict[str, str] | None = None, parent: str = "",
        resource_id: str | None = None, most: int | None = None, most_below: int | None = None,
    ) -> Resource:
        now, resource_id = self._clock(), resource_id or random_id(kind)
        if (kind, resource_id) in self._versions:
            raise Conflict(f"there is a {kind} '{resource_id}' already")
        for among, room in ((None, most), (parent, most_below)):
            if room is not None and self._in_use[kind, owner, among] >= room:
                raise too_many(kind, room)
        made = Resource(
            kind=kind, resource_id=resource_id, owner=owner, ordinal=next(self._count), version=1, created_at=now,
            updated_at=now, body=body, secrets=secrets or {}, parent=parent,
        )
        self._make_room(made)
        self._versions[kind, resource_id] = [made]
        for shelf in _list_keys(made):
            self._order[shelf].append((made.ordinal, resource_id))
            self._in_use[shelf] += 1
        self._index(None, made)
        if parent:
            self._below[parent].add((kind, resource_id))
        return made

    async def get(self, kind: str, owner: str, resource_id: str, version: int | None = None) -> Resource:
        versions = self._find(kind, owner, resource_id)
        if version is None:
            return versions[-1]
        if not 1 <= version <= len(versions):
            raise NotFound(f"{kind} '{resource_id}' has no version {version}; it has {len(versions)}")
        return versions[version - 1]

    async def versions(self, kind: str, owner: str, resource_id: str) -> Sequence[Resource]:
        return tuple(self._find(kind, owner, resource_id))

    async def list(
        self, kind: str, owner: str, *, parent: str | None = None, before: int | None = None, after: int | None = None,
        limit: int = 50, archived: bool = False, oldest_first: bool = False,
    ) -> Sequence[Resource]:
        order = self._order.get((kind, owner, parent), [])
        start = 0 if after is None else bisect_right(order, after, key=lambda row: row[0])
        end = len(order) if before is None else bisect_left(order, before, key=lambda row: row[0])
        rows = order[start:end] if oldest_first else reversed(order[start:end])
        found = []
        for _, resource_id in rows:
            newest = self._versions[kind, resource_id][-1]
            if archived or newest.archived_at is None:
                found.append(newest)
                if len(found) == limit:
                    break
        return found

    async def owners(self) -> Mapping[str, frozenset[str]]:
        return kinds_by_owner((kind, owner) for kind, owner, parent in self._order if parent is None)

    async def kinds_in_use(self, owner: str, kinds: Collection[str]) -> frozenset[str]:
        return frozenset(kind for kind in kinds if self._in_use.get((kind, owner, None)))

    async def update(
        self, kind: str, owner: str, resource_id: str, body: JsonObject, *, secrets: dict[str, str] | None = None,
        expected: int | None = None,
    ) -> Resource:
        versions = self._find(kind, owner, resource_id)
        newest = versions[-1]
        if expected not in (None, newest.version):
            raise Conflict(f"{kind} '{resource_id}' is at version {newest.version}, not {expected}")
        changed = replace(
            newest, version=newest.version + 1, body=body, updated_at=self._clock(),
            secrets=newest.secrets if secrets is None else secrets,
        )
        self._make_room(changed)
        versions.append(changed)
        self._index(newest, changed)
        return changed

    async def amend(self, kind: str, owner: str, resource_id: str, amendment: Amendment) -> Resource:
        versions = self._find(kind, owner, resource_id)
        old = versions[-1]
        new = versions[-1] = replace(old, body=amendment(old.body))
        self._tally.add(owner, stored_bytes=stored_size(new) - stored_size(old))
        return new

    async def with_terms(self, kind: str, owner: str, terms: Collection[str]) -> Sequence[Resource]:
        rarest, *others = sorted((self._places.get((kind, owner, term), {}) for term in terms), key=len)
        found = [row for row in rarest.items() if all(row[0] in other for other in others)]
        return [self._versions[kind, resource_id][-1] for _, resource_id in sorted(found, reverse=True)]

    async def ranked(
        self, kind: str, owner: str, terms: Collection[str], *, common: int, limit: int, offset: int = 0,
    ) -> Ranking:
        places = {term: self._places.get((kind, owner, term), {}) for term in terms}
        counting = counting_terms({term: len(has) for term, has in places.items()}, common)
        counts = Counter(row for term in counting for row in places[term].items())
        best = sorted(counts.items(), key=lambda row: (-row[1], -row[0][0]))[offset:offset + limit]
        return Ranking(terms=len(counting), found=[
            (self._versions[kind, resource_id][-1], number) for (_, resource_id), number in best])

    async def archive(self, kind: str, owner: str, resource_id: str) -> Resource:
        versions = self._find(kind, owner, resource_id)
        if versions[-1].archived_at is None:
            self._index(versions[-1], None)
            self._in_use.subtract(_list_keys(versions[-1]))
            versions[-1] = replace(versions[-1], archived_at=self._clock())
        return versions[-1]

    async def delete(self, kind: str, owner: str, resource_id: str) -> None:
        versions = self._find(kind, owner, resource_id)
        gone = versions[-1]
        del self._versions[kind, resource_id]
        self._kept -= len(versions)
        self._tally.add(owner, resources=-len(versions), stored_bytes=-sum(map(stored_size, versions)))
        if gone.archived_at is None:
            self._index(gone, None)
            self._in_use.subtract(_list_keys(gone))
        for shelf in _list_keys(gone):
            order = self._order[shelf]
            del order[bisect_left(order, gone.ordinal, key=lambda row: row[0])]
            if not order:
                del self._order[shelf], self._in_use[shelf]
        if gone.parent in self._below:
            self._below[gone.parent].discard((kind, resource_id))
        for child_kind, child_id in self._below.pop(resource_id, ()):
            await self.delete(child_kind, self._versions[child_kind, child_id][-1].owner, child_id)

    def _make_room(self, made: Resource) -> None:
        if self._kept >= self._most():
            raise Overloaded(f"the server keeps {self._most()} resources and versions of them; delete some first")
        weight = stored_size(made)
        self._tally.check(made.owner, "resources")
        self._tally.check(made.owner, "stored_bytes", weight)
        self._tally.add(made.owner, resources=1, stored_bytes=weight)
        self._kept += 1

    def _index(self, old: Resource | None, new: Resource | None) -> None:
        """Take a resource from the terms that it had, and put it under those that it has."""
        one = new or old
        assert one is not None, "there is a resource before the change, or after it"
        had, has = index_terms(old), index_terms(new)
        for term in had - has:
            places = self._places[one.kind, one.owner, term]
            del places[one.ordinal]
            if not places:
                del self._places[one.kind, one.owner, term]
        for term in has - had:
            self._places[one.kind, one.owner, term][one.ordinal] = one.resource_id

    def _find(self, kind: str, owner: str, resource_id: str) -> Versions:
        versions = self._versions.get((kind, resource_id))
        if versions is None or versions[-1].owner != owner:
            raise NotFound(f"there is no {kind} '{resource_id}'")
        return versions


def kinds_by_owner(pairs: Iterable[tuple[str, str]]) -> Mapping[str, frozenset[str]]:
    """The kinds of each owner, from pairs of a kind and an owner."""
    found = defaultdict[str, set[str]](set)
    for kind, owner in pairs:
        found[owner].add(kind)
    return {owner: frozenset(kinds) for owner, kinds in found.items()}


def index_terms(one: Resource | None) -> frozenset[str]:
    """The terms under which a resource is found; none if there is no resource, or an archived one."""
    return frozenset() if one is None or one.archived_at is not None else terms_of(one.kind, one.body)


def counting_terms(counts: Mapping[str, int], common: int) -> list[str]:
    """Which terms count, of terms with so many resources each: the rare ones, or all if every term is common."""
    rare = [term for term, count in counts.items() if count <= common]
    return rare if any(counts[term] for term in rare) else list(counts)


def too_many(kind: str, most: int) -> Conflict:
    return Conflict(f"there are {most} of the kind '{kind}' already; delete one first")


def stored_size(resource: Resource) -> int:
    """How many bytes a resource counts, with those of its file; a resource that cannot be encoded counts none."""
    size = resource.body.get("size") if resource.kind == "file" and resource.version == 1 else 0
    try:
        return len(_encode(resource.body)) + (size if isinstance(size, int) else 0)
    except (UnicodeEncodeError, TypeError):
        return 0


def _list_keys(resource: Resource) -> tuple[ListKey, ListKey]:
    """The indexes that a resource is in: all resources of its owner, and those with the same parent."""
    return (resource.kind, resource.owner, None), (resource.kind, resource.owner, resource.parent)
