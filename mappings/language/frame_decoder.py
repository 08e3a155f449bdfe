"""Reads frames with the templates that write them: a frame in, the cue that it says and the cue's bindings out.

A row of the table is found in three steps: its envelope, by the constants in it; its wire name; and, where several rows
share a wire name, the constants of their bodies that differ. Members that no template names are passed over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gateway.json_values import JsonValue

from .binding_reader import DATA, MISSING, NAME, BindingReader, UnreadableBody, WirePath, member
from .reader_code import compile_finder, compile_getter, compile_reader, compile_test

ANY_NAME = "*"
"""The wire name of a row that reads frames of names which no other row of its envelope has."""
UnreadableFrame = UnreadableBody


class DecodedFrame(NamedTuple):
    cue: str
    bindings: dict[str, Any]
    """By the names of the template; an attribute as a member: `$call.name` is `{"call": {"name": …}}`."""


# -- one spelling of a cue --------------------------------------------------------------------------------------------

class Mark(NamedTuple):
    """A member that a row is known by, and what must stand there: one of these words, an object, or anything.

    The word null stands for a member that is left out.
    """

    path: WirePath
    words: frozenset[Any] | None = None
    is_object: bool = False

    @property
    def is_one_look(self) -> bool:
        """Whether one comparison is enough: with words that must be there, or with the type object."""
        return self.is_object if self.words is None else None not in self.words

    def is_in(self, root: JsonValue) -> bool:
        found = member(root, self.path)
        if self.words is not None:
            return (found is MISSING and None in self.words) or (
                (found is None or isinstance(found, str | int)) and found in self.words)
        return isinstance(found, dict) if self.is_object else found is not MISSING and found is not None


class BodyPlace(NamedTuple):
    """Where a body stands that must be an object; one that may be missing must at least have a place."""

    path: WirePath
    may_be_missing: bool = False

    def check(self, root: JsonValue) -> None:
        """Raises `UnreadableBody`."""
        body = member(root, self.path)
        if isinstance(body, dict):
            return
        if not (self.may_be_missing and (body is MISSING or body is None)):
            raise UnreadableBody(self.path, "should be an object")
        if not isinstance(member(root, self.path[:-1]), dict):
            raise UnreadableBody(self.path[:-1], "should be an object")


Marks = tuple[tuple[Mark, ...], ...]
"""What a row is known by: of each choice it has one."""


@dataclass(frozen=True)
class Spelling:
    """One way in which a cue is spelled: how it is known, and what is read from it."""

    cue: str
    wire: str
    constants: Mapping[WirePath, Any]
    """Constants of the body that are no placeholders; null for a member that this spelling leaves out."""
    known_by: Marks | None
    """The members that the row itself names to be known by. None where the table leaves it to the loader what tells
    rows apart."""
    readers: tuple[BindingReader, ...]
    body: BodyPlace | None = None
    """Where the body stands, if it must be an object."""


class SpellingReader:
    """Reads the frames of one spelling, with what must be looked at first to know that it is this one."""

    __slots__ = ("_body", "_checked", "_marks", "_readers", "cue", "fits", "is_sure", "read", "wire")

    def __init__(self, spelling: Spelling, required: frozenset[WirePath], wanted: frozenset[str] | None) -> None:
        self.cue, self.wire, self._body = spelling.cue, spelling.wire, spelling.body
        marks = spelling.known_by
        self._marks = tuple((Mark(path, frozenset({value})),) for path, value in spelling.constants.items()
                            if path in required) if marks is None else marks
        self._checked = [(path, value) for path, value in spelling.constants.items()
                         if marks is None and path not in required]
        self._readers = [one for one in spelling.readers if wanted is None or one.name in wanted or one.key in wanted]
        self.is_sure = not (self._marks or self._checked)
        self.fits: Callable[[Any], bool] = self._fits_slowly
        """Whether what must be there is there, and of the other constants no other value is."""
        if not self._checked and all(len(choice) == 1 and choice[0].is_one_look for choice in self._marks):
            looks = [mark for [mark] in self._marks]
            self.fits = compile_test([(mark.path, dict if mark.words is None else mark.words) for mark in looks])
        self.read: Callable[[Any], dict[str, Any]] = self._read_slowly
        if all(one.is_plain for one in self._readers):
            body = self._body.path if self._body is not None else None
            self.read = compile_reader([one.fetched() for one in self._readers], self._read_slowly, body)

    @property
    def one_constant(self) -> tuple[tuple[WirePath, Any], ...] | None:
        """The one constant that identifies the spelling, if one is needed; None if several must be compared."""
        marks = [mark for choice in self._marks for mark in choice]
        if len(marks) > 1 or self._checked or any(mark.words is None or len(mark.words) != 1 for mark in marks):
            return None
        return tuple((mark.path, *mark.words) for mark in marks if mark.words)

    def _fits_slowly(self, root: JsonValue) -> bool:
        for choice in self._marks:
            if not any(mark.is_in(root) for mark in choice):
                return False
        return has_constants(root, self._checked)

    def _read_slowly(self, root: JsonValue) -> dict[str, Any]:
        if self._body is not None:
            self._body.check(root)
        bindings: dict[str, Any] = {}
        for one in self._readers:
            inner = bindings
            for step in (one.name, *one.steps)[:-1]:
                inner = inner.setdefault(step, {})
            inner[(one.name, *one.steps)[-1]] = one.read(root)
        return bindings


# -- rows that share a wire name ---------------------------------------------------------------------------------------

def in_order_of_trial(spellings: Sequence[Spelling]) -> list[tuple[Spelling, frozenset[WirePath]]]:
    """The spellings of one wire name, in the order in which they are tried, each with the constants that it must have.

    Rows that say themselves what they are known by come first, and of the others the more exact ones. A constant must
    be there unless all spellings of the name have it: a server may leave out what says nothing.
    """
    shared = {
        path for path, value in spellings[0].constants.items()
        if all(path in one.constants and one.constants[path] == value for one in spellings)
    }
    needed = [
        (one, frozenset(one.constants) - shared if one.known_by is None else
         frozenset(mark.path for choice in one.known_by for mark in choice))
        for one in spellings
    ]
    return sorted(needed, key=lambda pair: (pair[0].known_by is None, -len(pair[1])))


def confusable(spellings: Sequence[Spelling]) -> Iterator[tuple[Spelling, Spelling]]:
    """Pairs of different cues that one frame could be, neither of which is the more exact one."""
    ordered = in_order_of_trial(spellings)
    for index, (one, needed) in enumerate(ordered):
        for other, others in ordered[index + 1:]:
            is_ordered = (one.known_by is None) != (other.known_by is None)
            if one.cue != other.cue and not is_ordered and _overlap(one, needed, other, others):
                yield one, other


def _overlap(one: Spelling, needed: frozenset[WirePath], other: Spelling, others: frozenset[WirePath]) -> bool:
    for path in needed & others:
        if not _words_at(one, path) & _words_at(other, path):
            return False
    return not needed > others


def _words_at(spelling: Spelling, path: WirePath) -> set[Any]:
    """What a spelling may have at a place that it is known by."""
    if path in spelling.constants:
        return {spelling.constants[path]}
    marks = [mark for choice in spelling.known_by or () for mark in choice if mark.path == path]
    return set(marks[0].words or ()) if marks else set()


# -- envelopes --------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class EnvelopeForm:
    """What envelopes have in common that are known by the same constants and name frames at the same places."""

    constants: tuple[tuple[WirePath, Any], ...]
    wires: tuple[WirePath, ...]


class FoundFrame(NamedTuple):
    """A frame whose row is known, and that was not read yet."""

    cue: str
    wire: str
    read: Callable[[Any], dict[str, Any]]
    root: JsonValue

    def bindings(self) -> dict[str, Any]:
        """The bindings of the frame. Raises `UnreadableBody`."""
        return self.read(self.root)


Choose = Callable[[Any], SpellingReader | None]
"""From a frame to its row among those that share a wire name."""


def choose_row(rows: Sequence[SpellingReader]) -> Choose:
    """The first row that fits; if one constant distinguishes the rows, the row is looked up by it."""
    if len(rows) == 1 and rows[0].is_sure:
        return lambda root: rows[0]

    def try_each(root: object) -> SpellingReader | None:
        for row in rows:
            if row.is_sure or row.fits(root):
                return row
        return None

    constants_of = [row.one_constant for row in rows]
    paths = {path for constants in constants_of for path, _ in constants or ()}
    if None in constants_of or len(paths) != 1:
        return try_each
    look = compile_getter(paths.pop(), None)
    known: dict[Any, SpellingReader] = {}
    for row, constants in zip(rows, constants_of, strict=True):
        known.setdefault(constants[0][1] if constants else MISSING, row)
    default = known.get(MISSING)

    def choose(root: object) -> SpellingReader | None:
        value = look(root)
        return known.get(value, default) if value is None or type(value) is str else try_each(root)

    return choose


class Form(NamedTuple):
    """Rows in envelopes of one form: what they are known by, where their names stand, and the rows of each name."""

    constants: tuple[tuple[WirePath, Any], ...]
    wires: tuple[Callable[[Any], Any], ...]
    rows: dict[str, Choose]

    @property
    def frame_name(self) -> str | None:
        """The transport's name that all its frames have; None where they have several."""
        return next((value for path, value in self.constants if path == (NAME,)), None)

    def of_its_name(self) -> "Form":
        """The rows of frames whose name is known to fit."""
        return self._replace(constants=tuple(one for one in self.constants if one[0] != (NAME,)))


class FrameDecoder:
    """One table, read from right to left."""

    def __init__(
        self,
        forms: Mapping[EnvelopeForm, Mapping[str, Sequence[Spelling]]],
        wanted: Mapping[str, Sequence[str]] | None,
        always: Sequence[str] = (),
    ) -> None:
        names = {cue: frozenset((*asked, *always)) for cue, asked in (wanted or {}).items()}

        def reader(spelling: Spelling, required: frozenset[WirePath]) -> SpellingReader:
            asked = None if wanted is None else names.get(spelling.cue, frozenset(always))
            return SpellingReader(spelling, required, asked)

        ordered = sorted(forms.items(), key=lambda item: -len(item[0].constants))
        self.names = frozenset(wire for rows in forms.values() for wire in rows)
        """The wire names of all frames that are read."""
        self._forms = [
            Form(form.constants, tuple(compile_getter(path, None) for path in form.wires),
                 {wire: choose_row([reader(*pair) for pair in in_order_of_trial(spellings)])
                  for wire, spellings in rows.items()})
            for form, rows in ordered
        ]
        self._direct: dict[Any, Choose] = {}
        """Rows that one name alone finds: those of the first form, if it has no constants."""
        self._own_name: Callable[[Any], Any] | None = None
        """Where that name stands, if it is not the transport's."""
        for (form, _), made in zip(ordered[:1], self._forms, strict=False):
            if not form.constants and form.wires:
                self._direct = made.rows
                self._own_name = None if form.wires[0] == (NAME,) else made.wires[0]
        frame_names = {*self.names, *(one.frame_name for one in self._forms)} - {None}
        self._by_name = {
            name: [one.of_its_name() for one in self._forms if one.frame_name in (None, name)] for name in frame_names
        }
        self._row: Callable[[str, Any], SpellingReader | None] = self._row_slowly
        if not self._direct:
            self._row = compile_finder([
                (form.constants, form.wires[0] if form.wires else None, made.rows)
                for (form, _), made in zip(ordered, self._forms, strict=True)
            ], self._row_slowly)

    def decode(self, name: str, body: JsonValue) -> DecodedFrame | None:
        """What the frame says; None where the table has no such frame. Raises `UnreadableBody`."""
        found = self.read(name, body)
        return None if found is None else DecodedFrame(*found)

    def read(self, name: str, body: JsonValue) -> tuple[str, dict[str, Any]] | None:
        """Decode like `decode` into a plain pair, which is faster: for readers of every delta of a stream."""
        root = {NAME: name, DATA: body}
        row = self._row(name, root)
        return None if row is None else (row.cue, row.read(root))

    def find(self, name: str, body: JsonValue) -> FoundFrame | None:
        """Which row of the table the frame is; None where the table has no such frame."""
        root = {NAME: name, DATA: body}
        row = self._row(name, root)
        return None if row is None else FoundFrame(row.cue, row.wire, row.read, root)

    def _row_slowly(self, name: str, root: JsonValue) -> SpellingReader | None:
        own = name if self._own_name is None else self._own_name(root)
        direct = self._direct.get(own) if type(own) is str else None
        if direct is not None and (row := direct(root)) is not None:
            return row
        for constants, wires, rows in self._by_name.get(name, self._forms):
            if constants and not has_constants(root, constants):
                continue
            for look in wires:
                wire = look(root)
                choose = rows.get(wire) if type(wire) is str else None
                if choose is not None and (row := choose(root)) is not None:
                    return row
            if ANY_NAME in rows and (row := rows[ANY_NAME](root)) is not None:
                return row
        return None


def has_constants(root: JsonValue, constants: Sequence[tuple[WirePath, object]]) -> bool:
    """Whether nothing else stands where a constant belongs; a constant may be missing."""
    for path, value in constants:
        found = member(root, path)
        if found != value and found is not MISSING and found is not None:
            return False
    return True
