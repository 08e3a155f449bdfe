"""Reads one binding of a row: where it may stand in a frame or another body, its type, and what it is read as there."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.json_values import JsonValue

from .expressions import SPLICE, Array, Constant, Node, Object, Slot
from .filters import UnknownWord
from .reader_code import IS_OF_TYPE, Fetched
from .value_types import CHECKS, NOUNS, Need

WirePath = tuple[str | int, ...]
"""The way to a member of a frame: keys and indexes from its top."""
Invert = Callable[[Any], Any]
"""From a value of the wire to a value of the model; raises ValueError if the value is invalid."""
MISSING: object = object()
NAME, DATA = "event", "data"
"""Where the transport's own name of a frame and its parsed body stand in an envelope of a named framing."""


class UnreadableBody(ValueError):
    """A member of a frame or of another body is missing, or is not what it should be."""

    def __init__(self, path: WirePath, problem: str) -> None:
        super().__init__(f"'{dotted(path)}' {problem}")
        self.path, self.problem = path, problem

    @property
    def field(self) -> str:
        """The path of the member, as a reader of the body sees it."""
        return dotted(self.path)

    def within(self, path: WirePath) -> "UnreadableBody":
        """The error with its path below the body that contains this one."""
        return UnreadableBody((*path, *self.path[1:]), self.problem)


class UnfitValue(ValueError):
    """A value has the right type and is still invalid; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where a template has a constant or a slot."""

    path: WirePath
    node: Constant | Slot
    written: tuple[str, ...] | None = None
    """For a splice: the members beside it, which are not part of it. None for all else."""


def places(node: Node, path: WirePath = ()) -> Iterator[Place]:
    """Every constant and slot of a template, in its order."""
    if isinstance(node, Constant | Slot):
        yield Place(path, node)
    elif isinstance(node, Array):
        for index, item in enumerate(node.items):
            yield from places(item, (*path, index))
    elif isinstance(node, Object):
        written = tuple(key for key, _ in node.items if key != SPLICE)
        for key, child in node.items:
            if key != SPLICE:
                yield from places(child, (*path, key))
            elif isinstance(child, Slot):
                yield Place(path, child, written)


def is_placeholder(value: object) -> bool:
    """Whether a constant only fills its place: a frame may have anything there."""
    return value is None or value in ("", 0) or value is False


# -- what one binding is read from ------------------------------------------------------------------------------------

class Source(NamedTuple):
    """One place where a binding may stand, its type there, and how it is read from there."""

    path: WirePath
    type: str
    invert: Invert | None = None
    written: tuple[str, ...] | None = None


@dataclass(frozen=True)
class BindingReader:
    """One binding: the places where it may stand, the first of which has it, and what becomes of it elsewhere."""

    name: str
    steps: tuple[str, ...]
    need: Need
    sources: tuple[Source, ...]

    @property
    def key(self) -> str:
        return ".".join((self.name, *self.steps))

    @property
    def is_plain(self) -> bool:
        """Whether it usually stands at its first place, where one look tells its type."""
        first = self.sources[0]
        return first.written is None and first.type in IS_OF_TYPE and first.path != ()

    def fetched(self) -> Fetched:
        path, kind, invert, _ = self.sources[0]
        may_be_null = self.need is not Need.REQUIRED and len(self.sources) == 1
        return Fetched(path, kind, self.name, self.steps, invert, may_be_null)

    def read(self, root: JsonValue) -> Any:
        """Its value; null where it is not there. Raises `UnreadableBody`."""
        wrong: UnreadableBody | None = None
        for path, kind, invert, written in self.sources:
            value = member(root, path)
            if value is MISSING or value is None:
                wrong = wrong or misfit_above(root, path)
                continue
            if written and isinstance(value, dict):
                value = {key: item for key, item in value.items() if key not in written}
            unfit: UnreadableBody | None = None
            if CHECKS[kind](value):
                try:
                    return value if invert is None else invert(value)
                except UnreadableBody as error:
                    unfit = error.within(path)
                except (UnfitValue, UnknownWord) as error:
                    unfit = UnreadableBody(path, f"cannot be read: {error}")
                except ValueError:
                    pass
            wrong = wrong or unfit or UnreadableBody(path, f"should be {NOUNS[kind]}")
        if self.need is Need.LENIENT or (wrong is None and self.need is Need.STRICT):
            return None
        raise wrong or UnreadableBody(self.sources[0].path, "is missing")


def member(value: object, path: WirePath) -> Any:
    """What stands at the path, or MISSING."""
    for key in path:
        if type(value) is dict:
            value = value.get(key, MISSING)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return MISSING
    return value


def misfit_above(root: JsonValue, path: WirePath) -> UnreadableBody | None:
    """What is wrong with a member on the way, below the body, that has no members although it has a value."""
    for length in range(2, len(path)):
        found, noun = member(root, path[:length]), "list" if isinstance(path[length], int) else "object"
        if found is MISSING or found is None:
            return None
        if not CHECKS[noun](found):
            return UnreadableBody(path[:length], f"should be {NOUNS[noun]}")
    return None


def dotted(path: WirePath) -> str:
    """The path in words, as a person who looks at the body sees it."""
    return ".".join(map(str, path[1:] if path[:1] == (DATA,) else path)) or "the body"
