"""Structs for the rows of `objects`: their fields are the names that a row spells, so nobody lists the names again."""

import sys
from typing import ClassVar

from msgspec import Struct


class Body(Struct, frozen=True, kw_only=True):
    """One row of the table's objects, or several rows that have the same names."""

    row: ClassVar[str]
    rows: ClassVar[tuple[str, ...]] = ()


def rows_of(module: str) -> dict[str, type[Body]]:
    """By row: the struct of the module that has its names."""
    found = [kind for kind in vars(sys.modules[module]).values() if isinstance(kind, type) and issubclass(kind, Body)]
    return {row: kind for kind in found for row in (*vars(kind).get("rows", ()), vars(kind).get("row", "")) if row}
