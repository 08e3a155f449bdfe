"""Wire models that fail fast: a value is checked up to the first mistake of each array and each map in it."""

from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema

_SEVERAL = ("list", "tuple", "set", "frozenset", "dict")
"""Kinds of schemas for any number of values."""
_NO_SCHEMAS = ("default", "metadata", "serialization")


def _stop_early(schema: Any) -> None:
    """Let every array and map in a schema, at any depth, fail at its first mistake."""
    waiting, seen = [schema], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        inside = one
        if isinstance(one, dict):
            inside = [inner for name, inner in one.items() if name not in _NO_SCHEMAS]
            if one.get("type") in _SEVERAL:
                one["fail_fast"] = True
        waiting += [inner for inner in inside if isinstance(inner, dict | list | tuple)]


class FailFast:
    """A base beside pydantic's: the model stops looking through an array or a map at its first mistake.

    pydantic collects every mistake. A body of a megabyte can have half a million of them, which takes seconds to
    collect, and nobody reads them.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _stop_early(schema)
        return schema
