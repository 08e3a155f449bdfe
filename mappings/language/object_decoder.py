"""Reads REST bodies and nested bodies with the rows of `objects` that write them."""

from collections.abc import Sequence
from typing import Any

from .frame_decoder import DecodedFrame, Spelling, SpellingReader, choose_row, told_apart


class ObjectDecoder:
    """One row, or several that the same body could be; of a body that could be none of them, the first is read."""

    def __init__(self, spellings: Sequence[Spelling]) -> None:
        readers = {one.cue: SpellingReader(one, needed, None) for one, needed in told_apart(spellings)}
        self._choose = choose_row(list(readers.values()))
        self._first = readers[spellings[0].cue]

    def decode(self, body: Any) -> DecodedFrame:
        """The name of the row, and its bindings. Raises `UnreadableFrame`."""
        row = self._choose(body) or self._first
        return DecodedFrame(row.cue, row.read(body))

    def read(self, body: Any) -> dict[str, Any]:
        """The bindings. Raises `UnreadableFrame`."""
        return (self._choose(body) or self._first).read(body)
