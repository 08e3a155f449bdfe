"""The places of an OpenAPI document at which any value is allowed."""

from collections.abc import Iterator
from typing import Any

WORDS_ABOUT = frozenset(("title", "description", "default", "examples"))
"""Keywords that allow and forbid nothing."""
SINGLE, SEVERAL, NAMED = ("items", "additionalProperties"), ("anyOf", "oneOf", "allOf", "prefixItems"), ("properties",)


def open_places(document: dict[str, Any]) -> dict[str, list[str]]:
    """By the tag of an operation, or by what comes before the dot of a component: the places."""
    found: dict[str, list[str]] = {}
    for name, schema in document["components"]["schemas"].items():
        found.setdefault(name.partition(".")[0] if "." in name else "", []).extend(_open(schema, name))
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            places = found.setdefault(operation["tags"][0], [])
            for at, schema in _schemas(operation):
                places.extend(_open(schema, f"{method} {path} {at}"))
    return {owner: places for owner, places in found.items() if places}


def _schemas(operation: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for one in operation["parameters"]:
        yield f"?{one['name']}", one["schema"]
    contents = {"body": operation.get("requestBody", {}), **operation["responses"]}
    for at, one in contents.items():
        for content in one.get("content", {}).values():
            if "schema" in content:
                yield at, content["schema"]


def _open(schema: Any, at: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    if not schema.keys() - WORDS_ABOUT:
        yield at
    for word in SINGLE:
        if word in schema:
            yield from _open(schema[word], f"{at}.*")
    for word in SEVERAL:
        for number, one in enumerate(schema.get(word, ())):
            yield from _open(one, f"{at}|{number}")
    for word in NAMED:
        for name, one in schema.get(word, {}).items():
            yield from _open(one, f"{at}.{name}")
