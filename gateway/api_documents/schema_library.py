"""The schemas of one document: each type, model and row is described once, by its name."""

from collections.abc import Mapping, Set
from typing import Any

import msgspec
from pydantic import BaseModel

from gateway.http import AnyFrame, Row, Shape, TableMessage
from gateway.ports import Framing
from mappings.language import Schema, Table, WireSchemas, any_of

REFERENCE = "#/components/schemas/{}"
MEMBERS, ABSENT = "...", "?"


class SchemaLibrary:
    """Makes the schemas that a document needs, and keeps those that have a name."""

    def __init__(self) -> None:
        self._named: dict[str, Schema] = {}
        self._wires: dict[str, WireSchemas] = {}

    def components(self) -> dict[str, Schema]:
        """All schemas that have a name."""
        rows = {f"{prefix}.{component_name(row)}": schema
                for prefix, wire in self._wires.items() for row, schema in wire.rows.items()}
        return dict(sorted((self._named | rows).items()))

    def wire(self, table: Table) -> WireSchemas:
        """The schemas of a table."""
        name = table.dialect
        if name not in self._wires:
            self._wires[name] = table.schemas(
                self.of_type, lambda row: REFERENCE.format(f"{name}.{component_name(row)}"))
        return self._wires[name]

    def of_type(self, hint: Any, prefix: str = "") -> Schema:
        """The schema of a Python type; the models of a dialect have its prefix."""
        if isinstance(hint, type) and issubclass(hint, BaseModel):
            return self._of_model(hint, prefix)
        if hint is object:
            return {}
        [found], named = msgspec.json.schema_components(
            [hint], ref_template=REFERENCE.replace("{}", "{name}"))
        self._keep(named)
        return found

    def named(self, name: str, schema: Schema) -> Schema:
        """Keep a schema under a name; return a reference to it."""
        self._keep({name: schema})
        return {"$ref": REFERENCE.format(name)}

    def shape(self, shape: Shape, wire: WireSchemas | None, prefix: str = "") -> Schema:
        """The schema of a declared shape."""
        if isinstance(shape, str):
            assert wire is not None, f"'{shape}' is the row of a table, and there is none"
            return wire.row(shape)
        if isinstance(shape, Row):
            assert wire is not None, f"'{shape.name}' is the row of a table, and there is none"
            bound = {name: None if one is None else self.shape(one, wire, prefix) for name, one in shape.bound.items()}
            return wire.body(shape.name, bound)
        if isinstance(shape, AnyFrame):
            assert wire is not None, "there is no table that has frames"
            return any_of(schema for name, schema in self.frames(prefix, wire, shape.framing).items()
                          if not shape.names or name in shape.names)
        if isinstance(shape, TableMessage):
            assert wire is not None, f"'{shape.name}' is a message of a table, and there is none"
            return wire.message(shape.name) or {"type": "object"}
        if isinstance(shape, list):
            return {"type": "array", "items": self.shape(shape[0], wire, prefix)}
        if isinstance(shape, tuple):
            return any_of(self.shape(one, wire, prefix) for one in shape)
        if isinstance(shape, Set):
            return {"enum": sorted(shape)}
        if isinstance(shape, Mapping):
            return self._members(shape, wire, prefix)
        return self.of_type(shape, prefix)

    def frames(self, prefix: str, wire: WireSchemas, framing: Framing) -> dict[str, Schema]:
        """By wire name: references to the frames of a table."""
        return {name: self.named(f"{prefix}.{framing}.{component_name(name)}", schema)
                for name, schema in wire.frames(framing).items()}

    def _members(self, shape: Mapping[str, Shape], wire: WireSchemas | None, prefix: str) -> Schema:
        made: Schema = {
            "type": "object",
            "properties": {name.removesuffix(ABSENT): self.shape(member, wire, prefix)
                           for name, member in shape.items() if name != MEMBERS},
            "required": [name for name in shape if name != MEMBERS and not name.endswith(ABSENT)],
        }
        if MEMBERS in shape and wire is not None:
            return wire.merged(made, self._resolved(self.shape(shape[MEMBERS], wire, prefix)))
        return made

    def _resolved(self, schema: Schema) -> Schema:
        return self._named.get(schema.get("$ref", "").removeprefix(REFERENCE.format("")), schema)

    def _of_model(self, model: type[BaseModel], prefix: str) -> Schema:
        lead = f"{prefix}." if prefix else ""
        template = REFERENCE.format(f"{lead}{{model}}")
        described = model.model_json_schema(ref_template=template)
        own = {f"{lead}{name}": schema for name, schema in described.pop("$defs", {}).items()}
        if "$ref" not in described:
            own[f"{lead}{model.__name__}"] = described
        self._keep(own)
        return {"$ref": REFERENCE.format(f"{lead}{model.__name__}")}

    def _keep(self, named: Mapping[str, Schema]) -> None:
        for name, schema in named.items():
            assert self._named.setdefault(name, schema) == schema, f"two types are called '{name}'"


def component_name(name: str) -> str:
    """A name that can be the name of a component."""
    return "".join(sign if sign.isalnum() or sign in "._-" else "." for sign in name)
