"""Reads content blocks with the `parts` that write them; of two kinds that are written alike, the first is read.

A file that has an address and no name in its block has an empty one.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from msgspec import Struct

import gateway.model as m
from gateway.json_values import JsonValue

from .binding_reader import DATA, UnreadableBody
from .frame_decoder import Spelling, SpellingReader
from .scopes import BASE64, PART_TYPES, type_hints, union_members

FILE = m.FilePart.__struct_config__.tag


class ContentDecoder:
    """Blocks of the wire → parts of the model. Blocks of kinds that the table does not have are passed over."""

    def __init__(self, spellings: Sequence[Spelling]) -> None:
        self._key, self._readers = _readers_by_member(spellings)

    def content(self, value: object) -> m.Content:
        """A text stays a text."""
        return value if isinstance(value, str) else self.parts(value)

    def parts(self, value: Any) -> tuple[m.AnyPart, ...]:
        """A text is one part."""
        if isinstance(value, str):
            return (m.TextPart(text=value),)
        return tuple([part for block in value if (part := self.part(block)) is not None])

    def content_sent(self, value: JsonValue) -> m.Content:
        """Content that a client sends: no block is passed over. Raises `UnreadableBody`."""
        return value if isinstance(value, str) else self.parts_sent(value)

    def parts_sent(self, value: Any) -> tuple[m.AnyPart, ...]:
        if isinstance(value, str):
            return (m.TextPart(text=value),)
        return tuple([self._part_sent(number, block) for number, block in enumerate(value)])

    def _part_sent(self, number: int, block: JsonValue) -> m.AnyPart:
        part = self.part(block)
        if part is None:
            raise UnreadableBody((DATA, number), "should be a block of content that this protocol has")
        return part

    def part(self, block: object) -> m.AnyPart | None:
        if not isinstance(block, dict):
            return None
        word = block.get(self._key)
        for reader in self._readers.get(word if isinstance(word, str) else None, ()):
            if reader.is_known or reader.fits(block):
                try:
                    return reader.read(block)
                except (UnreadableBody, TypeError):
                    continue
        return None


class PartReader:
    """One spelling of a kind of blocks; `is_known` says whether the type of a block alone identifies it."""

    __slots__ = ("_fields", "_is_plain", "_part", "fits", "is_known", "kind")

    def __init__(self, spelling: Spelling, *, is_known: bool) -> None:
        row = SpellingReader(spelling, frozenset(spelling.constants), None)
        self.kind, self.is_known, self.fits, self._fields = spelling.cue, is_known, row.fits, row.read
        self._part = PART_TYPES[self.kind]
        names = {one.name for one in spelling.readers}
        self._is_plain = self.kind != FILE and BASE64 not in names and not names & _nested_structs(self._part).keys()

    def read(self, block: JsonValue) -> m.AnyPart:
        """Raises `UnreadableBody`, or TypeError where a field is missing."""
        given = self._fields(block)
        if self._is_plain and None not in given.values():
            return cast(m.AnyPart, self._part(**given))
        return cast(m.AnyPart, make_struct(self._part, part_fields(self.kind, given)))


def _readers_by_member(spellings: Sequence[Spelling]) -> tuple[str | None, dict[str | None, list[PartReader]]]:
    """The member that all kinds of blocks have a word for, and the readers of each word; without one, all of them."""
    common = [path for path in (spellings[0].constants if spellings else ())
              if len(path) == 1 and all(isinstance(one.constants.get(path), str) for one in spellings)]
    if not common:
        return None, {None: [PartReader(one, is_known=False) for one in spellings]}
    found: dict[str | None, list[PartReader]] = {}
    for one in spellings:
        found.setdefault(one.constants[common[0]], []).append(PartReader(one, is_known=len(one.constants) == 1))
    return str(common[0][0]), found


def part_fields(kind: str, bindings: dict[str, Any]) -> dict[str, Any]:
    """The fields of a part; the content of a `data:` address and its type are its address."""
    if BASE64 in bindings:
        content, media_type = bindings.pop(BASE64), bindings.get("media_type")
        bindings["url"] = f"data:{media_type};base64,{''.join(content.split())}" if content and media_type else None
    has_no_name = kind == FILE and not bindings.get("name") and (bindings.get("url") or bindings.get("file_id"))
    return {**bindings, "name": ""} if has_no_name else bindings


def make_struct(kind: type[Struct], bindings: Mapping[str, object]) -> Any:
    """The struct with these fields; what is null is left to its default. Raises TypeError where a field is missing."""
    nested = _nested_structs(kind)
    return kind(**{
        name: make_struct(nested[name], value) if name in nested and isinstance(value, dict) else value
        for name, value in bindings.items() if value is not None
    })


@cache
def _nested_structs(kind: type[Struct]) -> dict[str, type[Struct]]:
    """The fields that are structs themselves."""
    return {
        name: kinds[0] for name, hint in type_hints(kind).items()
        if (kinds := [one for one in union_members(hint) if isinstance(one, type) and issubclass(one, Struct)])
    }
