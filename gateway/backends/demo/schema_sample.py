"""A sample value for a JSON Schema: deterministic, and as small as the schema allows."""

from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor
from typing import Any

MAX_DEPTH, MAX_LOOKUPS = 24, 1000
"""Schemas come from clients: beyond this depth, or this number of lookups, values are empty."""

Schema = Mapping[str, Any]


def sample(schema: Schema | bool, word: str = "sample") -> object:
    """`word` is the value of a string that the schema does not restrict."""
    return _SchemaSampler(schema if isinstance(schema, Mapping) else {}, word).value(schema, 0)


class _SchemaSampler:
    """Makes values for one schema; local references are looked up in its root."""

    def __init__(self, root: Schema, word: str) -> None:
        self._root, self._word, self._lookups = root, word, 0

    def value(self, schema: Schema | bool, depth: int) -> object:
        schema = self._plain(schema, depth)
        for fixed in ("const", "default"):
            if fixed in schema:
                return schema[fixed]
        if enum := _list(schema, "enum"):
            return enum[0]
        return _MAKERS[_type(schema)](self, schema, depth)

    def _plain(self, schema: Schema | bool, depth: int) -> Schema:
        """The schema with references resolved, `allOf` merged and an alternative chosen."""
        plain: Schema = schema if isinstance(schema, Mapping) else {}
        self._lookups += 1
        if depth > MAX_DEPTH or self._lookups > MAX_LOOKUPS:
            return {key: plain[key] for key in plain if key not in _ENDLESS}
        if "$ref" in plain:
            plain = _merge_schemas([self._looked_up(str(plain["$ref"])), _without(plain, "$ref")])
            return self._plain(plain, depth + 1)
        for key in ("anyOf", "oneOf"):
            if among := _list(plain, key):
                plain = _merge_schemas([_without(plain, key), self._plain(min(among, key=_depth), depth + 1)])
        parts = [self._plain(part, depth + 1) for part in _list(plain, "allOf")]
        return _merge_schemas([_without(plain, "allOf"), *parts]) if parts else plain

    def _looked_up(self, reference: str) -> Schema:
        found: object = self._root if reference.startswith("#") else {}
        for step in filter(None, reference.lstrip("#").split("/")):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step, {}) if isinstance(found, Mapping) else {}
        return found if isinstance(found, Mapping) else {}

    def _object(self, schema: Schema, depth: int) -> dict[str, object]:
        properties, least = _map(schema, "properties"), _count(schema, "minProperties", 0)
        names = list(dict.fromkeys(str(name) for name in _list(schema, "required")))
        spare = [name for name in properties if name not in names]
        names += spare[:max(0, least - len(names))]
        made = {name: self.value(properties.get(name, _extra(schema)), depth + 1) for name in names}
        for number in range(least - len(made)):
            made[f"extra_{number + 1}"] = self.value(_extra(schema), depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[object]:
        shown, items = _list(schema, "prefixItems"), _map(schema, "items")
        least = _count(schema, "minItems", len(shown))
        made = [self.value(shown[at] if at < len(shown) else items, depth + 1) for at in range(least)]
        return _make_distinct(made, self._plain(items, depth + 1)) if schema.get("uniqueItems") else made

    def _string(self, schema: Schema, depth: int) -> str:
        if (known := _FORMATS.get(str(schema.get("format")))) is not None:
            return known
        text = self._word + "." * max(0, _count(schema, "minLength", 0) - len(self._word))
        return text[:_count(schema, "maxLength", len(text))]

    def _integer(self, schema: Schema, depth: int) -> int:
        return int(_number(schema, 1))

    def _float(self, schema: Schema, depth: int) -> float | int:
        return _number(schema, 0)

    def _boolean(self, schema: Schema, depth: int) -> bool:
        return True

    def _null(self, schema: Schema, depth: int) -> None:
        return None


_MAKERS: dict[str, Callable[[_SchemaSampler, Schema, int], object]] = {
    "object": _SchemaSampler._object,
    "array": _SchemaSampler._array,
    "string": _SchemaSampler._string,
    "integer": _SchemaSampler._integer,
    "number": _SchemaSampler._float,
    "boolean": _SchemaSampler._boolean,
    "null": _SchemaSampler._null,
}
_ENDLESS = ("$ref", "anyOf", "oneOf", "allOf", "properties", "items", "required", "minItems", "minProperties")
_HINTS = {
    "properties": "object", "required": "object", "items": "array", "minItems": "array", "prefixItems": "array",
    "minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
    "minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "multipleOf": "number",
}
_FORMATS = {
    "date-time": "2024-01-01T00:00:00Z", "date": "2024-01-01", "time": "00:00:00Z", "email": "sample@example.com",
    "uri": "https://example.com/", "uuid": "00000000-0000-4000-8000-000000000000", "ipv4": "192.0.2.1",
    "hostname": "example.com",
}


def _type(schema: Schema) -> str:
    named = schema.get("type")
    if isinstance(named, list):
        named = next((kind for kind in named if kind != "null"), "null")
    if isinstance(named, str) and named in _MAKERS:
        return named
    return next((_HINTS[key] for key in schema if key in _HINTS), "object")


def _number(schema: Schema, step: int) -> float | int:
    """The allowed number nearest to zero; `step` is 1 for integers."""
    grid = _bound(schema, "multipleOf") or step
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    nudge = grid or (abs(above - below) / 2 if above is not None and below is not None else 0.5)
    low = max((bound for bound in (low, None if above is None else above + nudge) if bound is not None), default=None)
    high = min((bound for bound in (high, None if below is None else below - nudge) if bound is not None), default=None)
    value = low if low is not None and low > 0 else high if high is not None and high < 0 else 0
    if not grid or abs(value) > abs(grid) * 2**53:
        return value
    return grid * (ceil(value / grid) if value > 0 else floor(value / grid))


def _bound(schema: Schema, key: str) -> float | int | None:
    value = schema.get(key)
    return value if isinstance(value, int | float) and abs(value) < 2**63 else None


def _count(schema: Schema, key: str, otherwise: int) -> int:
    value = schema.get(key)
    return min(max(value, 0), MAX_LOOKUPS) if isinstance(value, int) else otherwise


def _list(schema: Schema, key: str) -> list[Any]:
    value = schema.get(key)
    return value if isinstance(value, list) else []


def _map(schema: Schema, key: str) -> Schema:
    value = schema.get(key)
    return value if isinstance(value, Mapping) else {}


def _extra(schema: Schema) -> Schema:
    return _map(schema, "additionalProperties") or {"type": "string"}


def _depth(schema: Schema | bool) -> int:
    """The rank of an alternative: plain ones first, null before a reference, so that recursion ends."""
    plain = schema if isinstance(schema, Mapping) else {}
    return 2 if "$ref" in plain else 1 if _type(plain) == "null" else 0


def _without(schema: Schema, key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def _merge_schemas(parts: Iterable[Schema]) -> Schema:
    """Several schemas as one: properties and requirements add up, for other keywords the last schema counts."""
    joined: dict[str, object] = {}
    for part in parts:
        properties = {**_map(joined, "properties"), **_map(part, "properties")}
        required = [*_list(joined, "required"), *_list(part, "required")]
        joined |= {**part, **({"properties": properties} if properties else {}),
                   **({"required": required} if required else {})}
    return joined


def _make_distinct(values: list[object], items: Schema) -> list[object]:
    """Make items differ: the values of an enum in turn, else numbers counted up and strings numbered."""
    choices = _list(items, "enum")
    made = []
    for at, value in enumerate(values):
        if at < len(choices):
            value = choices[at]
        elif isinstance(value, bool):
            value = at == 0
        elif isinstance(value, int | float):
            value = value + at * (_bound(items, "multipleOf") or 1)
        elif isinstance(value, str) and at:
            value = f"{value}{at}"
        made.append(value)
    return made
