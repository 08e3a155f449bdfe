"""The table with which a client role reads frames of a server; a frame that does not fit is the server's fault."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from gateway.errors import BackendFailed
from gateway.field_errors import describe_struct_error
from gateway.json_values import JsonObject, JsonValue
from gateway.ports import Framing

from .binding_reader import UnreadableBody
from .frame_decoder import FrameDecoder
from .load import builtin_table
from .object_decoder import Body
from .table import Table

Bindings = dict[str, Any]
"""The values that a row of the table has read, by the names of the row."""


Read = TypeVar("Read", bound=Body)


class ServerTable:
    """The built-in table of a dialect: a server knows nothing of the overrides of this deployment.

    The dialect is imported when its table is first needed, because a dialect imports its client role.
    """

    def __init__(self, package: str, *framings: Framing) -> None:
        self._package, self._framings = package, framings

    @cached_property
    def table(self) -> Table:
        return builtin_table(import_module(self._package).DIALECT)

    def frames(
        self, wanted: Mapping[str, Sequence[str]] | None = None, always: Sequence[str] = ()
    ) -> FrameDecoder:
        """The decoder of frames; of each cue only the `wanted` names are bound, and the names in `always`."""
        return self.table.decoder(*self._framings, wanted=wanted, always=always)

    # -- bodies -------------------------------------------------------------------------------------------------------

    def spell(self, body: Body) -> JsonObject:
        """The body as its row spells it."""
        return self.table.object(body.row, body)

    def read(self, row: str, body: JsonValue, what: str = "") -> Bindings:
        """The bindings of a body. Raises `BackendFailed`, which says `what` of the server does not fit."""
        try:
            return self.table.read_object(row, body)
        except UnreadableBody as error:
            raise BackendFailed(f"{what or row} of the server cannot be understood: {error}") from None

    def read_fitting(self, row: str, body: JsonValue) -> Bindings | None:
        """The bindings of a body; None if it has another shape than the row."""
        try:
            return self.table.read_object(row, body)
        except UnreadableBody:
            return None

    def read_as(self, kind: type[Read], body: JsonValue, what: str) -> Read:
        """A body as the struct of its row. Raises `BackendFailed`."""
        try:
            return msgspec.convert(self.read(kind.row, body, what), kind)
        except msgspec.ValidationError as error:
            raise BackendFailed(f"{what} of the server cannot be understood: {describe_struct_error(error)}") from None
