"""Which call a piece of one belongs to: services tell that in many ways, and some hardly at all."""

from typing import Any

import msgspec

from .chunks import CallPiece, Function


class OpenCall:
    """A call in the making: what it is known by, upstream and to the scribe, and its input so far."""

    __slots__ = ("id", "input", "key", "name")

    def __init__(self, key: tuple[str, int], id: str | None, name: str) -> None:
        self.key, self.id, self.name = key, id, name
        self.input: list[str] = []

    @property
    def is_whole(self) -> bool:
        """Whether nothing can be added to its input."""
        return _object("".join(self.input)) is not None

    def repeats(self, arguments: str) -> bool:
        """Whether a piece says once more, and as a whole, what was said in pieces: some services end so."""
        if not (self.input and arguments.startswith("{") and arguments.endswith("}")):
            return False
        return (whole := _object("".join(self.input))) is not None and whole == _object(arguments)


class Calls:
    """The calls of one answer, in the order they began."""

    def __init__(self) -> None:
        self._made: list[OpenCall] = []
        self._at: dict[int, OpenCall] = {}

    def take(self, piece: CallPiece) -> tuple[OpenCall, str, bool]:
        """The call that a piece belongs to, what it adds to its input, and whether the call begins with it."""
        function = piece.function or Function()
        name, arguments = function.name or "", function.arguments or ""
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        call, is_new = self._known(piece), False
        if call is None or _is_new(call, piece, name, arguments):
            call, is_new = self._begin(piece, name), True
        elif call.repeats(arguments):
            return call, "", False
        call.input.append(arguments)
        return call, arguments, is_new

    def _known(self, piece: CallPiece) -> OpenCall | None:
        if piece.index is not None:
            return self._at.get(piece.index)
        last = self._made[-1] if self._made else None
        return next((call for call in self._made if piece.id and call.id == piece.id), last)

    def _begin(self, piece: CallPiece, name: str) -> OpenCall:
        call = OpenCall(("call", len(self._made)), piece.id, name)
        self._made.append(call)
        if piece.index is not None:
            self._at[piece.index] = call
        return call


def _is_new(call: OpenCall, piece: CallPiece, name: str, arguments: str) -> bool:
    """Whether a piece belongs to another call than the one its index, or the lack of one, points to.

    Some servers give every call the index 0, some give none, some repeat ids and names with every piece, some
    give every piece an id of its own, some give two calls one id, and some give a name in pieces, before the input.
    No call begins without a name.
    """
    if not name or not call.name:
        return False
    if piece.id and call.id and piece.id != call.id:
        return True
    if name != call.name:
        return call.is_whole or not (piece.id and call.id)
    if piece.index is None and not piece.id:
        return True
    return bool(arguments) and call.is_whole and not (piece.id and call.repeats(arguments))


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is none."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
