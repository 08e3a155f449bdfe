"""A value that fits a JSON Schema, always the same one; what a schema leaves open is kept small."""

from collections.abc import Callable, Iterable, Mapping
from math import ceil, floor
from typing import Any

DEEPEST = 24
"""A schema that still refers to itself at this depth is taken at its emptiest."""

Schema = Mapping[str, Any]


def sample(schema: Schema | bool, word: str = "sample") -> Any:
    """`word` is what strings say where nothing says otherwise."""
    return _Sampler(schema if isinstance(schema, Mapping) else {}, word).value(schema, 0)


class _Sampler:
    """One document: its root is what local references are looked up in."""

    def __init__(self, root: Schema, word: str) -> None:
        self._root, self._word = root, word

    def value(self, schema: Schema | bool, depth: int) -> Any:
        schema = self._plain(schema, depth)
        for fixed in ("const", "default"):
            if fixed in schema:
                return schema[fixed]
        if schema.get("enum"):
            return schema["enum"][0]
        return _MAKERS[_type(schema)](self, schema, depth)

    def _plain(self, schema: Schema | bool, depth: int) -> Schema:
        """The schema with its references followed, its parts put together and its alternatives chosen."""
        plain: Schema = schema if isinstance(schema, Mapping) else {}
        if depth > DEEPEST:
            return {key: plain[key] for key in plain if key not in _ENDLESS}
        if "$ref" in plain:
            plain = _joined([self._looked_up(plain["$ref"]), _without(plain, "$ref")])
            return self._plain(plain, depth + 1)
        for key in ("anyOf", "oneOf"):
            if plain.get(key):
                plain = _joined([_without(plain, key), self._plain(_shallowest(plain[key]), depth + 1)])
        if plain.get("allOf"):
            plain = _joined([_without(plain, "allOf"), *(self._plain(part, depth + 1) for part in plain["allOf"])])
        return plain

    def _looked_up(self, reference: str) -> Schema:
        found: Any = self._root if reference.startswith("#") else {}
        for step in filter(None, reference.lstrip("#").split("/")):
            step = step.replace("~1", "/").replace("~0", "~")
            found = found.get(step, {}) if isinstance(found, Mapping) else {}
        return found if isinstance(found, Mapping) else {}

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        names = list(dict.fromkeys(schema.get("required", ())))
        spare = [name for name in properties if name not in names]
        names += spare[:max(0, schema.get("minProperties", 0) - len(names))]
        made = {name: self.value(properties.get(name, _extra(schema)), depth + 1) for name in names}
        for number in range(schema.get("minProperties", 0) - len(made)):
            made[f"extra_{number + 1}"] = self.value(_extra(schema), depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        shown = schema.get("prefixItems", ())
        items = schema.get("items", {})
        least = schema.get("minItems", len(shown))
        made = [self.value(shown[at] if at < len(shown) else items, depth + 1) for at in range(least)]
        return _distinct(made, self._plain(items, depth + 1)) if schema.get("uniqueItems") else made

    def _string(self, schema: Schema, depth: int) -> str:
        if (known := _FORMATS.get(schema.get("format", ""))) is not None:
            return known
        least = schema.get("minLength", 0)
        text: str = self._word + "." * max(0, least - len(self._word))
        most: int = schema.get("maxLength", len(text))
        return text[:most]

    def _integer(self, schema: Schema, depth: int) -> int:
        return int(_number(schema, 1))

    def _float(self, schema: Schema, depth: int) -> float | int:
        return _number(schema, 0)

    def _boolean(self, schema: Schema, depth: int) -> bool:
        return True

    def _null(self, schema: Schema, depth: int) -> None:
        return None


_MAKERS: dict[str, Callable[[_Sampler, Schema, int], Any]] = {
    "object": _Sampler._object, "array": _Sampler._array, "string": _Sampler._string,
    "integer": _Sampler._integer, "number": _Sampler._float, "boolean": _Sampler._boolean, "null": _Sampler._null,
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
    return named if named in _MAKERS else next((_HINTS[key] for key in schema if key in _HINTS), "object")


def _number(schema: Schema, step: int) -> float | int:
    """The number nearest to nought that is allowed; `step` is 1 where only whole numbers will do."""
    grid = schema.get("multipleOf", step)
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    nudge = grid or (abs(above - below) / 2 if above is not None and below is not None else 0.5)
    low = max((bound for bound in (low, None if above is None else above + nudge) if bound is not None), default=None)
    high = min((bound for bound in (high, None if below is None else below - nudge) if bound is not None), default=None)
    value = low if low is not None and low > 0 else high if high is not None and high < 0 else 0
    if not grid:
        return value
    return grid * (ceil(value / grid) if value > 0 else floor(value / grid))  # type: ignore[no-any-return]


def _extra(schema: Schema) -> Schema | bool:
    return schema.get("additionalProperties") or {"type": "string"}


def _shallowest(alternatives: Iterable[Schema | bool]) -> Schema | bool:
    """The first alternative that refers to nothing, so that recursion ends; null before a reference."""
    return min(alternatives, key=_depth)


def _depth(schema: Schema | bool) -> int:
    plain = schema if isinstance(schema, Mapping) else {}
    return 2 if "$ref" in plain else 1 if _type(plain) == "null" else 0


def _without(schema: Schema, key: str) -> Schema:
    return {name: value for name, value in schema.items() if name != key}


def _joined(parts: Iterable[Schema]) -> Schema:
    """Several schemas as one: properties and requirements add up, of anything else the later word counts."""
    joined: dict[str, Any] = {}
    for part in parts:
        properties = {**joined.get("properties", {}), **part.get("properties", {})}
        required = [*joined.get("required", ()), *part.get("required", ())]
        joined |= {**part, **({"properties": properties} if properties else {}),
                   **({"required": required} if required else {})}
    return joined


def _distinct(values: list[Any], items: Schema) -> list[Any]:
    """Items that must differ: the choices of an enum in turn, else numbers counted up and words numbered."""
    choices = items.get("enum", ())
    made = []
    for at, value in enumerate(values):
        if at < len(choices):
            value = choices[at]
        elif isinstance(value, bool):
            value = at == 0
        elif isinstance(value, int | float):
            value = value + at * items.get("multipleOf", 1)
        elif isinstance(value, str) and at:
            value = f"{value}{at}"
        made.append(value)
    return made
