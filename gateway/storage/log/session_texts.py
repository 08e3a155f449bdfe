"""The index of the texts of sessions, in memory: a search adds the records that are new since the last one."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

import gateway.model as m
from gateway.ports import SessionHead
from gateway.search_terms import Terms, pairs_of
from gateway.time_slices import next_slice

SLICE_CHARACTERS = 32 * 1024
"""How many characters are divided into terms in one slice."""


async def terms_in_slices(records: Iterable[m.Record]) -> set[str]:
    """The terms of the texts in the records; other requests are served meanwhile, however long the texts are."""
    terms, left = set[str](), SLICE_CHARACTERS
    for text in m.searched_texts(records):
        for start in range(0, len(text), SLICE_CHARACTERS):
            part = text[start:start + SLICE_CHARACTERS + 1]  # one more, because terms are pairs of characters
            terms |= pairs_of(part)
            left -= len(part)
            if left <= 0:
                left = SLICE_CHARACTERS
                await next_slice()
    return terms


class OwnerTexts:
    """The texts of one owner: for each pair of neighbouring characters the sessions that have it, in order."""

    def __init__(self) -> None:
        self.indexed: dict[str, int] = {}
        """By session: how many of its records are indexed."""
        self.places: dict[str, array[int]] = {}
        self.removed = 0
        """How many sessions are in the index that were deleted."""

    def add(self, ordinal: int, terms: Collection[str]) -> None:
        for term in terms:
            ordinals = self.places.setdefault(term, array("Q"))
            if not _has(ordinals, ordinal):
                ordinals.insert(bisect_left(ordinals, ordinal), ordinal)

    def ordinals_with(self, terms: Terms) -> list[int]:
        found = [self.places.get(term) for term in terms]
        shortest, *others = sorted((ordinals for ordinals in found if ordinals is not None), key=len) or [array("Q")]
        if None in found:
            return []
        return [ordinal for ordinal in shortest if all(_has(ordinals, ordinal) for ordinals in others)]


def _has(ordinals: "array[int]", ordinal: int) -> bool:
    place = bisect_left(ordinals, ordinal)
    return place < len(ordinals) and ordinals[place] == ordinal


class MemorySessionTexts:
    """The texts of all owners; those of an owner who never searches are not indexed."""

    def __init__(self) -> None:
        self._changed: dict[str, dict[str, None]] = {}
        """By owner: the sessions that have changed since they were indexed."""
        self._owners: dict[str, OwnerTexts] = {}

    def changed(self, head: SessionHead) -> None:
        self._changed.setdefault(head.owner, {})[head.session_id] = None

    def unindexed(self, owner: str) -> Iterator[tuple[str, int]]:
        """Each session that has changed, and how many of its records are indexed."""
        for session_id in tuple(self._changed.get(owner, ())):
            yield session_id, self._texts(owner).indexed.get(session_id, 0)

    def add(self, head: SessionHead, after: int, upto: int, terms: Collection[str], *, is_all: bool) -> None:
        """Index records of a session in which no turn runs, so that no message is cut in two; `is_all`: up to the last.

        Another search may have indexed the records while this one collected their terms.
        """
        texts = self._texts(head.owner)
        if texts.indexed.get(head.session_id, 0) != after:
            return
        texts.add(head.ordinal, terms)
        texts.indexed[head.session_id] = upto
        if is_all:
            self._changed.get(head.owner, {}).pop(head.session_id, None)

    def ordinals_with(self, owner: str, terms: Terms) -> list[int]:
        """The sessions that have all these terms; some of them may be deleted."""
        return self._texts(owner).ordinals_with(terms)

    def remove(self, head: SessionHead) -> None:
        """A session was deleted; an index with more deleted sessions than others is made again."""
        self._changed.get(head.owner, {}).pop(head.session_id, None)
        texts = self._texts(head.owner)
        if texts.indexed.pop(head.session_id, None) is not None:
            texts.removed += 1
            if texts.removed > len(texts.indexed):
                self._changed.setdefault(head.owner, {}).update(dict.fromkeys(texts.indexed))
                del self._owners[head.owner]

    def _texts(self, owner: str) -> OwnerTexts:
        return self._owners.setdefault(owner, OwnerTexts())
