"""The JSON Schemas of a dialect's bodies, and the errors of bodies that do not fit."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson

from conformance.kit import expect

MOST_PROBLEMS = 5
WATCHER: ContextVar[Callable[[str, Any, str | None], None] | None] = ContextVar("watcher", default=None)
"""Called with the schema that a value is checked by and the requirement that owns the shape; None if nobody asks."""


@dataclass(frozen=True)
class SchemaError:
    """One reason why a value does not fit a schema, with the path of the member."""

    path: tuple[str | int, ...]
    message: str
    is_missing: bool = False
    """Whether the member is not there at all."""


class Schemas:
    """The schema files of one folder, known by their file names; they may refer to each other by `$id`."""

    def __init__(self, folder: Path) -> None:
        documents = {path.stem: orjson.loads(path.read_bytes()) for path in sorted(folder.glob("*.json"))}
        registry = jsonschema_rs.Registry([(document["$id"], document) for document in documents.values()])
        self._validators = {
            name: jsonschema_rs.Draft202012Validator(document, registry=registry)
            for name, document in documents.items()
        }

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._validators)

    def problems(self, name: str, value: Any) -> list[str]:
        """Why the value does not fit the schema of this name, in words; empty if it fits."""
        validator = self._validators[name]
        try:
            if validator.is_valid(value):  # in half the time that a search for errors takes
                return []
            return [f"{_place(error.instance_path)}: {error.message}" for error in validator.iter_errors(value)]
        except ValueError as error:
            return [f"/: cannot be held to a schema: {error}"]

    def errors(self, name: str, value: Any, owner: str | None = None) -> list[SchemaError]:
        """The errors of the value by the schema of this name, member by member; a watcher is called."""
        if (watcher := WATCHER.get()) is not None:
            watcher(name, value, owner or expect.OWNER.get())
        validator = self._validators[name]
        try:
            return [] if validator.is_valid(value) else [_error(error) for error in validator.iter_errors(value)]
        except ValueError as error:
            return [SchemaError((), f"cannot be held to a schema: {error}")]

    def fit(self, name: str, value: Any, what: str, owner: str | None = None) -> None:
        """Fail unless the value fits; the owner is the requirement that the shape belongs to."""
        if (watcher := WATCHER.get()) is not None:
            watcher(name, value, owner or expect.OWNER.get())
        problems = self.problems(name, value)
        if problems:
            listed = "; ".join(expect.show(problem) for problem in problems[:MOST_PROBLEMS])
            expect.fail(f"{what} to fit the schema `{name}`", f"{listed}\nin {expect.show(value)}", owner)


def _error(error: jsonschema_rs.ValidationError) -> SchemaError:
    missing = getattr(error.kind, "property", None) if type(error.kind).__name__.endswith("Required") else None
    path = (*error.instance_path, *([missing] if missing is not None else []))
    return SchemaError(path, error.message, missing is not None)


def _place(path: list[str | int]) -> str:
    return "/" + "/".join(str(step) for step in path)


DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
)


def is_schema(value: dict[str, Any]) -> bool:
    """Whether the object is a JSON Schema of any usual draft."""
    return any(jsonschema_rs.meta.is_valid({**value, "$schema": draft}) for draft in DRAFTS)
