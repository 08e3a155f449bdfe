"""Reads content blocks with the `parts` that write them; of two kinds that are written alike, the first is read.

A file that has no name in its block has an empty one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

from msgspec import Struct

import gateway.model as m

from .frame_decoder import Spelling, SpellingReader, UnreadableFrame
from .scopes import BASE64, PART_TYPES, union_members

FILE = m.FilePart.__struct_config__.tag


class ContentDecoder:
    """Blocks of the wire → parts of the model. Blocks of kinds that the table does not have are passed over."""

    def __init__(self, spellings: Sequence[Spelling]) -> None:
        self._readers = [SpellingReader(one, frozenset(one.constants), None) for one in spellings]

    def content(self, value: Any) -> m.Content:
        """A text stays a text."""
        return value if isinstance(value, str) else self.parts(value)

    def parts(self, value: Any) -> tuple[m.AnyPart, ...]:
        blocks = [{"type": "text", "text": value}] if isinstance(value, str) else value
        return tuple(part for block in blocks if (part := self.part(block)) is not None)

    def part(self, block: Any) -> m.AnyPart | None:
        if not isinstance(block, dict):
            return None
        for reader in self._readers:
            if reader.fits(block):
                try:
                    part: m.AnyPart = make_struct(PART_TYPES[reader.cue], part_fields(reader.cue, reader.read(block)))
                    return part
                except (UnreadableFrame, TypeError):
                    continue
        return None


def part_fields(kind: str, bindings: dict[str, Any]) -> dict[str, Any]:
    """The fields of a part; the content of a `data:` address and its type are its address."""
    if BASE64 in bindings:
        content, media_type = bindings.pop(BASE64), bindings.get("media_type")
        bindings["url"] = f"data:{media_type};base64,{''.join(content.split())}" if content and media_type else None
    return {**bindings, "name": bindings.get("name") or ""} if kind == FILE else bindings


def make_struct(kind: type[Struct], bindings: Mapping[str, Any]) -> Any:
    """The struct with these fields; what is null is left to its default. Raises TypeError where a field is missing."""
    hints = get_type_hints(kind)
    given = {name: _nested(hints.get(name), value) for name, value in bindings.items() if value is not None}
    return kind(**given)


def _nested(hint: Any, value: Any) -> Any:
    kinds = [one for one in union_members(hint) if isinstance(one, type) and issubclass(one, Struct)]
    return make_struct(kinds[0], value) if kinds and isinstance(value, dict) else value

