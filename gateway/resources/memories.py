"""Memories: short texts that a user wants an agent to know in every session, each with a number of its own."""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

import gateway.model as m
from gateway.errors import Conflict, NotFound
from gateway.json_values import JsonObject
from gateway.ports import Clock, Resource, Resources
from gateway.search_terms import keyword_terms, words_of
from gateway.time_slices import sliced

KIND = "note"
MAX_MEMORIES = 10_000
"""How many memories a user may have."""


COMMON = 200
"""A word that more memories than this have says little about any of them."""
PAGE = 50
"""How many of the memories that fit a text are looked at together."""

MemoryType = Literal["feedback", "experience"]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A text, what it is about, and where it came from."""

    content: str
    type: MemoryType = "feedback"
    skill: str | None = None
    record: str | None = None
    scope: str | None = None
    owner: str | None = None
    topic: str | None = None
    external_id: str | None = None
    superseded_by: int | None = None
    reason: str | None = None
    session_id: str = ""
    disabled: bool = False
    hits: int = 0
    last_hit_at: float | None = None
    metadata: JsonObject = {}
    """What a client keeps with the memory, for itself."""


class MemoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The values that memories must have to be found; a field that is not set is not compared."""

    type: MemoryType | UnsetType = UNSET
    skill: str | UnsetType | None = UNSET
    record: str | UnsetType | None = UNSET
    scope: str | UnsetType | None = UNSET
    owner: str | UnsetType | None = UNSET
    topic: str | UnsetType | None = UNSET
    disabled: bool | UnsetType = UNSET

    def conditions(self) -> Sequence[tuple[str, object]]:
        """The fields that are set, with their values."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, value) for name, value in fields if value is not UNSET]


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as it is stored; `number` is its id."""

    number: int
    memory: Memory
    created_at: float
    updated_at: float | None
    resource: Resource

    @classmethod
    def of(cls, found: Resource) -> "StoredMemory":
        changed = found.updated_at if found.version > 1 else None
        return cls(found.ordinal, msgspec.convert(found.body, Memory), found.created_at, changed, found)


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A memory that fits a text, and how well."""

    stored: StoredMemory
    score: float


class Memories:
    """The memories of all users in one store; the memories of other users are not found."""

    def __init__(self, resources: Resources, clock: Clock = time.time) -> None:
        self._resources = resources
        self._clock = clock

    async def add(self, owner: str, memory: Memory) -> StoredMemory:
        try:
            return StoredMemory.of(
                await self._resources.create(KIND, owner, msgspec.to_builtins(memory), most=MAX_MEMORIES))
        except Conflict:
            raise Conflict(f"you have {MAX_MEMORIES} memories already; delete some first") from None

    async def find(self, owner: str, number: int) -> StoredMemory:
        found = await self._resources.list(KIND, owner, after=number - 1, before=number + 1, limit=1)
        if not found:
            raise NotFound(f"there is no memory {number}")
        return StoredMemory.of(found[0])

    async def search(
        self, owner: str, wanted: MemoryFilter, keyword: str = "", *, offset: int = 0, limit: int = 20,
    ) -> tuple[list[StoredMemory], int]:
        """A page of the memories that match, newest first, and how many match in all."""
        found, keyword, conditions = list[StoredMemory](), keyword.casefold(), wanted.conditions()
        async for some in sliced(await self._with_keyword(owner, keyword)):
            found += [kept for kept in map(StoredMemory.of, some) if _matches(kept.memory, conditions, keyword)]
        return found[offset:offset + limit], len(found)

    async def _with_keyword(self, owner: str, keyword: str) -> Sequence[Resource]:
        """The memories among which are all that have the keyword, newest first."""
        if terms := keyword_terms(keyword):
            return await self._resources.with_terms(KIND, owner, terms)
        return await self._resources.list(KIND, owner, limit=MAX_MEMORIES)

    async def recall(
        self, owner: str, text: str, *, fits: Callable[[Memory], bool] = lambda memory: True, limit: int = 5,
    ) -> list[RecalledMemory]:
        """The memories that share words with a text, best first; each is counted as used.

        A score is the share of the words of the text that a memory has; a word that very many memories have counts only
        if they have no other word of the text. A memory that is switched off or superseded is never found.
        """
        words, best, offset = words_of(text), list[RecalledMemory](), 0
        while words and len(best) < limit:
            page = await self._resources.ranked(KIND, owner, words, common=COMMON, limit=PAGE, offset=offset)
            if not page.found:
                break
            found = [RecalledMemory(StoredMemory.of(one), count / page.terms) for one, count in page.found]
            best += [one for one in found if _is_in_use(one.stored.memory) and fits(one.stored.memory)]
            offset += PAGE
        return await asyncio.gather(*(self._used(one) for one in best[:limit]))

    async def _used(self, found: RecalledMemory) -> RecalledMemory:
        """Count a use; a memory that somebody deletes just now is not counted."""
        now, resource = self._clock(), found.stored.resource

        def count(body: JsonObject) -> JsonObject:
            old = msgspec.convert(body, Memory)
            counted: JsonObject = msgspec.to_builtins(replace(old, hits=old.hits + 1, last_hit_at=now))
            return counted

        try:
            counted = await self._resources.amend(KIND, resource.owner, resource.resource_id, count)
        except NotFound:
            return found
        return RecalledMemory(StoredMemory.of(counted), found.score)

    async def change(self, owner: str, number: int, /, **changes: object) -> StoredMemory:
        """`owner` among the changes is what the memory says of itself, not whose memory it is."""
        old = await self.find(owner, number)
        body = msgspec.to_builtins(replace(old.memory, **changes))
        return StoredMemory.of(await self._resources.update(
            KIND, owner, old.resource.resource_id, body, expected=old.resource.version,
        ))

    async def remove(self, owner: str, number: int) -> None:
        await self._resources.delete(KIND, owner, (await self.find(owner, number)).resource.resource_id)

    async def change_all(self, owner: str, numbers: Iterable[int], /, **changes: object) -> int:
        """Change those of these memories that there are; return how many."""
        found = await self._those(owner, numbers)
        for kept in found:
            await self.change(owner, kept.number, **changes)
        return len(found)

    async def remove_all(self, owner: str, numbers: Iterable[int]) -> int:
        """Delete those of these memories that there are; return how many."""
        found = await self._those(owner, numbers)
        for kept in found:
            await self.remove(owner, kept.number)
        return len(found)

    async def _those(self, owner: str, numbers: Iterable[int]) -> list[StoredMemory]:
        found = []
        for number in sorted(set(numbers)):
            with suppress(NotFound):
                found.append(await self.find(owner, number))
        return found


class SessionMemories:
    """The memories that sessions get with a message."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def recall(self, owner: str, message: str, user: str | None) -> list[m.MemoryRef]:
        """The memories that fit best; `user` narrows them to those that name this user, or nobody if it is empty."""
        found = await self._memories.recall(
            owner, message, fits=lambda memory: user is None or (memory.owner or "") == user)
        return [
            m.MemoryRef(number=one.stored.number, content=one.stored.memory.content, skill=one.stored.memory.skill)
            for one in found
        ]


def _is_in_use(memory: Memory) -> bool:
    return not memory.disabled and memory.superseded_by is None


def _matches(memory: Memory, conditions: Sequence[tuple[str, object]], keyword: str) -> bool:
    return (
        keyword in memory.content.casefold()
        and all(getattr(memory, name) == value for name, value in conditions)
    )
