"""Reads REST bodies and nested bodies with the rows of `objects` that write them."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from gateway.json_values import JsonValue

from .binding_reader import DATA, UnreadableBody
from .frame_decoder import DecodedFrame, Spelling, SpellingReader, choose_row, in_order_of_trial


class Body(Struct, frozen=True, kw_only=True):
    """One row of the table's objects, or several rows that have the same names."""

    row: ClassVar[str]
    rows: ClassVar[tuple[str, ...]] = ()


def rows_of(module: str) -> dict[str, type[Body]]:
    """By row: the struct of the module that has its names."""
    found = [kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and issubclass(kind, Body)]
    return {row: kind for kind in found for row in (*vars(kind).get("rows", ()), vars(kind).get("row", "")) if row}


class ObjectDecoder:
    """One row, or several that the same body could be; of a body that could be none of them, the first is read."""

    def __init__(self, spellings: Sequence[Spelling]) -> None:
        readers = {one.cue: SpellingReader(one, needed, None) for one, needed in in_order_of_trial(spellings)}
        self._choose = choose_row(list(readers.values()))
        self._first = readers[spellings[0].cue]

    def decode(self, body: JsonValue) -> DecodedFrame:
        """The name of the row, and its bindings. Raises `UnreadableBody`."""
        root = {DATA: body}
        row = self._choose(root) or self._first
        return DecodedFrame(row.cue, row.read(root))

    def read(self, body: JsonValue) -> dict[str, Any]:
        """The bindings. Raises `UnreadableBody`."""
        root = {DATA: body}
        return (self._choose(root) or self._first).read(root)

    def fits(self, body: object) -> bool:
        """Whether the body could be of one of the rows, by its constants."""
        return self._choose({DATA: body}) is not None


def read_each(read: Callable[[object], object], bodies: Any, *, is_lenient: bool = False) -> list[Any]:
    """The bindings of each body of a list. Raises `UnreadableBody` with the number of the body that is wrong.

    If the list is read leniently, a body that is wrong is passed over.
    """
    found: list[Any] = []
    for number, body in enumerate(bodies):
        try:
            found.append(read(body))
        except UnreadableBody as error:
            if not is_lenient:
                raise error.within((DATA, number)) from None
    return found
