"""Reads JSON within limits, so that it can be written again unchanged, and sends long arrays in pieces."""

import json
import re
from collections.abc import Generator, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
import orjson

MAX_JSON_DEPTH = 150
"""The number of nested levels that a request, a frame or an event may have."""
MAX_JSON_ITEMS = 40_000
"""The number of values that a request or a frame may have; arrays and objects count twice."""
SMALLEST, LARGEST = -(2 ** 63), 2 ** 64 - 1
"""The integers that can be written again."""
_ROOM = 104
"""The number of levels that can be added around the deepest value before orjson refuses to write it."""
_DEEPEST = 1024
"""The number of levels that orjson reads."""
_SHOWN = 40
"""A number with more digits is described instead of quoted."""
_LONGEST = 5000
"""A number with more digits is not read."""
_TOKENS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}:]|[^"\[\]{}:]++')
_PIECE = 1024 * 1024
"""The number of bytes that are searched in one step."""
_SEVERAL = 16_384
"""The number of tokens that are read in one step; a text of so many items has at most ten times as many tokens."""

if TYPE_CHECKING:
    JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
else:
    JsonValue = Any  # msgspec and pydantic read annotations, and know no recursive alias
JsonObject = dict[str, JsonValue]

T = TypeVar("T")
ValuePath = tuple[str | int, ...]
Steps = Generator[None, None, T]
"""Work that can be interrupted at each yield."""


class JsonLimitExceeded(ValueError):
    """A value is nested too deeply, or has too large a number or too many items; `field` is the path in words."""

    def __init__(self, path: ValuePath, words: str) -> None:
        self.path = path
        self.field = ".".join(map(str, path))
        super().__init__(f"{self.field}: {words}" if self.field else words)
        self.words = words


class _Number(str):
    """A number of a text that cannot be written again."""

    __slots__ = ()


def read_json(text: bytes | str, most: int = MAX_JSON_ITEMS) -> Any:
    """Read JSON that will be written again. Raises `JsonLimitExceeded` or `orjson.JSONDecodeError`."""
    return run_steps(read_json_in_steps(text, most))


def read_json_in_steps(text: bytes | str, most: int = MAX_JSON_ITEMS) -> Steps[Any]:
    """Read JSON as `read_json` does, in steps, so that a long text does not block the event loop.

    A decoder cannot be interrupted: the items are counted before the text is decoded, so that decoding is never long.
    """
    written = text if isinstance(text, bytes) else text.encode(errors="replace")
    if len(written) > most:  # a shorter text has no room for so many
        yield from _check_items(written, most)
    if len(written) > _PIECE:
        yield
    try:
        value = msgspec.json.decode(text)
        if _can_be_written(value):
            return value
        may_be_limit = True
    except (msgspec.ValidationError, RecursionError):
        may_be_limit = True
    except (msgspec.MsgspecError, UnicodeError):
        may_be_limit = False
    if len(written) > _PIECE:
        yield
    if may_be_limit:
        yield from _check_text(written, most)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if not _is_deep(written[:error.pos]):
            raise
        reason = error
    yield from _check_text(written, most)
    raise reason


def _is_deep(text: bytes) -> bool:
    """Whether orjson may have stopped reading here because of the depth, and not because this is no JSON."""
    return text.count(b"[") + text.count(b"{") >= _DEEPEST


def run_steps(steps: Steps[T]) -> T:
    """Run all steps and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result


def read_exact_json(text: bytes | str) -> Any:
    """Read JSON with integers of any size. Raises `orjson.JSONDecodeError` if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return orjson.loads(text)


def check_limits(value: object) -> None:
    """Raise `JsonLimitExceeded` if a value is nested too deeply or has an integer that is too large."""
    if _fits(value):
        return
    for path, found in _leaves(value):
        if len(path) > MAX_JSON_DEPTH:
            raise JsonLimitExceeded(path[:3], _too_deep(_levels(value)))
        if isinstance(found, int) and not SMALLEST <= found <= LARGEST:
            raise JsonLimitExceeded(path, _too_large(_digits(found)))


def _check_items(text: bytes, most: int) -> Steps[None]:
    """Raise `JsonLimitExceeded` if a text has more items; the insides of strings do not count."""
    if text.count(b",") <= most and _marks(text) <= most:
        return
    found = quotes = 0
    for piece in _pieces(text):
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        inside, some = quotes % 2, piece.count(b'"')
        quotes += some
        if quotes <= 4 * most:
            found += _marks(b"".join(piece.split(b'"')[inside::2]) if some else b"" if inside else piece)
        if found > most or quotes > 4 * most:
            raise JsonLimitExceeded((), f"has more than {most} items, arrays and objects; send it in several parts")
        yield


def _pieces(text: bytes) -> Iterator[bytes]:
    """Yield the text in pieces, none of which ends inside an escape sequence."""
    start = 0
    while start < len(text):
        piece = text[start:start + _PIECE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = text[start:start + _PIECE + 1]
        yield piece
        start += len(piece)


def _marks(text: bytes) -> int:
    """Count the characters that begin an item, an array or an object."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _can_be_written(value: object) -> bool:
    """Say whether decoded JSON is within the limits; strings are not looked at, because every string can be written."""
    level: list[object] = [value]
    for depth in range(MAX_JSON_DEPTH + 1):
        below: list[object] = []
        for one in level:
            if isinstance(one, dict | list):
                if depth == MAX_JSON_DEPTH:
                    return False
                below.extend(one.values() if isinstance(one, dict) else one)
            elif isinstance(one, int) and not SMALLEST <= one <= LARGEST:
                return False
        if not below:
            return True
        level = below
    return True


def _fits(value: object) -> bool:
    for _ in range(_ROOM):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True


def _check_text(text: bytes, most: int) -> Steps[None]:
    """Raise `JsonLimitExceeded` if a limit is the reason why the text cannot be read and written again."""
    if text.count(b"[") + text.count(b"{") > MAX_JSON_DEPTH:
        depth, path = yield from _depth(text, 10 * most + _SEVERAL)
        if depth > MAX_JSON_DEPTH:
            raise JsonLimitExceeded(path, _too_deep(depth))
    try:
        value = json.loads(text, parse_int=_integer, parse_float=_float)
    except (ValueError, RecursionError):
        return  # orjson reports the error
    for path, found in _leaves(value):
        if isinstance(found, _Number):
            raise JsonLimitExceeded(path, _too_large(found))
    yield


def _depth(text: bytes, most_tokens: int) -> Steps[tuple[int, ValuePath]]:
    """Return the depth of the text, and the path to the place where it is too deep."""
    depth = deepest = 0
    names: dict[int, bytes] = {}
    path: ValuePath = ()
    before = b""
    for number, found in enumerate(islice(_TOKENS.finditer(text), most_tokens), 1):
        token = found[0]
        if token in b"[{":
            depth += 1
            if depth > deepest:
                deepest = depth
                if depth == MAX_JSON_DEPTH + 1:
                    path = tuple(name.decode(errors="replace") for name in list(names.values())[:3])
        elif token in b"]}":
            names.pop(depth, None)
            depth -= 1
        elif token == b":":
            names[depth] = before[1:-1]
        elif token[:1] == b'"':
            before = token
        if number % _SEVERAL == 0:
            yield
        if depth < 0:
            break  # the rest is not JSON
    return deepest, path


def _leaves(value: object) -> Iterator[tuple[ValuePath, object]]:
    """Yield values that are neither arrays nor objects, and values that are nested too deeply, with their paths."""
    waiting: list[tuple[ValuePath, object]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, dict) and len(path) <= MAX_JSON_DEPTH:
            waiting += reversed([((*path, str(key)), item) for key, item in found.items()])
        elif isinstance(found, list | tuple) and len(path) <= MAX_JSON_DEPTH:
            waiting += reversed([((*path, index), item) for index, item in enumerate(found)])
        else:
            yield path, found


def _levels(value: object) -> int:
    """Return the number of nested levels of a value."""
    levels, inside = 0, [value]
    while inside := [one for one in inside if isinstance(one, dict | list | tuple)]:
        levels += 1
        inside = [item for one in inside for item in (one.values() if isinstance(one, dict) else one)]
    return levels


def _integer(digits: str) -> int | _Number:
    if len(digits) <= 20 and SMALLEST <= int(digits) <= LARGEST:
        return int(digits)
    return _Number(digits)


def _float(digits: str) -> float | _Number:
    number = float(digits if len(digits) <= _LONGEST else "inf")
    return _Number(digits) if number in (float("inf"), float("-inf")) else number


def _digits(number: int) -> str:
    """Return the digits of an integer, or as many nines: Python refuses to write very long integers."""
    return str(number) if number.bit_length() < 1000 else "9" * int(number.bit_length() * 0.30103)


def _too_large(digits: str) -> str:
    shown = digits if len(digits) <= _SHOWN else f"a number of {len(digits)} characters"
    if not digits[:_LONGEST].lstrip("-").isdecimal():
        return f"{shown} is larger than a double can be; write it as a string"
    return f"{shown} does not fit into 64 bits; write it as a string"


def _too_deep(levels: int) -> str:
    return f"nested {levels} levels deep; at most {MAX_JSON_DEPTH} levels are possible"


class EncodedArray:
    """The values of an array, each already encoded as JSON."""

    __slots__ = ("values",)

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def pieces(self) -> list[bytes]:
        """Yield the JSON of the array in pieces."""
        separated = [piece for value in self.values for piece in (b",", value)]
        return [b"[", *separated[1:], b"]"]
