"""Rows of `inputs`: what a client sends, read as a command and written from one."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

import gateway.model as m
from gateway.json_values import JsonValue

from .binding_reader import DATA, UnreadableBody
from .check import COMMANDS_BY_KIND
from .compile import ExpressionCompiler, Getter
from .content_decoder import make_struct
from .expressions import Constant, slots
from .filters import Filter
from .frame_decoder import Spelling, SpellingReader, has_constants
from .parsed_table import InputTemplate
from .reader_code import compile_check
from .scopes import command_scope, type_hints
from .spellings import SpellingCompiler

MakeCommand = Callable[[Mapping[str, Any]], m.AnyCommand]


class MessageReader:
    """Reads the bodies of one message."""

    def __init__(self, spelling: Spelling) -> None:
        self._row = SpellingReader(spelling, frozenset(), None)
        self._exact = SpellingReader(spelling, frozenset(spelling.constants), None)
        self._constants = dict(spelling.constants)
        self._has_constants = compile_check(list(self._constants.items()))

    def read(self, body: JsonValue) -> dict[str, Any]:
        """The bindings. Raises `UnreadableBody`, also where something else stands in the place of a constant."""
        root = {DATA: body}
        if not self._has_constants(root) and not self._row.fits(root):
            raise self._wrong_constant(root)
        return self._row.read(root)

    def fits(self, body: object) -> bool:
        """Whether the body has all constants of the row."""
        return self._exact.fits({DATA: body})

    @property
    def exactness(self) -> int:
        return len(self._constants)

    def _wrong_constant(self, root: JsonValue) -> UnreadableBody:
        path, value = next(one for one in self._constants.items() if not has_constants(root, [one]))
        return UnreadableBody(path, f"should be '{value}'")


class ClientMessage:
    """One row of `inputs`; one without `wire` is neither read nor written."""

    __slots__ = ("_name", "_reader", "_write", "command")

    def __init__(
        self, name: str, command: MakeCommand, reader: MessageReader | None = None, write: Getter | None = None
    ) -> None:
        self._name, self.command, self._reader, self._write = name, command, reader, write

    def read(self, body: JsonValue) -> dict[str, Any]:
        return {} if self._reader is None else self._reader.read(body)

    def fits(self, body: object) -> bool:
        return self._reader is not None and self._reader.fits(body)

    @property
    def exactness(self) -> int:
        return 0 if self._reader is None else self._reader.exactness

    def write(self, bindings: Mapping[str, Any]) -> Any:
        if self._write is None:
            raise LookupError(f"the table does not say how '{self._name}' is sent")
        return self._write(None, None, bindings)


def spelled_message(
    name: str, row: InputTemplate, spellings: SpellingCompiler, filters: Mapping[str, Filter]
) -> ClientMessage:
    """A message whose row says how it is sent."""
    command = COMMANDS_BY_KIND[row.command]
    hints = type_hints(command)
    constants = [(key, node.value) for key, node in row.fixed.items if isinstance(node, Constant)]
    fixed = {key: msgspec.convert(value, hints[key]) for key, value in constants}
    fields = frozenset(command.__struct_fields__)

    def make(bindings: Mapping[str, object]) -> m.AnyCommand:
        given = {key: value for key, value in bindings.items() if value is not None and key in fields}
        return cast(m.AnyCommand, command(**fixed, **given) if fixed else command(**given))

    def make_nested(bindings: Mapping[str, object]) -> m.AnyCommand:
        made: m.AnyCommand = make_struct(command, {**fixed, **{k: v for k, v in bindings.items() if k in fields}})
        return made

    if row.wire is None:
        return ClientMessage(name, make)
    is_nested = any(slot.steps for slot, _ in slots(row.wire))
    scope = command_scope(command, row.beside)
    write = ExpressionCompiler(scope, filters).value(row.wire)
    reader = MessageReader(spellings.message_spelling(name, row, row.wire))
    return ClientMessage(name, make_nested if is_nested else make, reader, write)
