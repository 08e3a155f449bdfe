"""The OpenAPI document of the console's API, made from its operations and their models."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from gateway.json_values import JsonValue

from .operations import API, JSON, SSE, ConsoleQuery, Operation

REF = "#/components/schemas/{}"
_PLACE = re.compile(r"{(\w+)}")
LAST_EVENT_ID = {
    "name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"},
    "description": "The id of the last event that the client has had: the stream goes on after it.",
}
FAILURES = {
    "400": "The request cannot be understood.", "401": "A key is needed.", "403": "This key may not do that.",
    "404": "There is no such thing for this key.", "409": "The request does not fit the current state.",
    "413": "The request is too large.", "422": "That is not supported.", "429": "Too many requests.",
    "503": "The server has no capacity, or is about to stop.",
}


class ApiFault(Struct, kw_only=True):
    """The error in words, and the name of the wrong parameter."""

    code: str
    message: str
    param: str | None
    request_id: str | None


class ApiError(Struct, kw_only=True):
    error: ApiFault


def openapi_document(operations: Sequence[Operation], version: str) -> dict[str, Any]:
    """The document; every model is described once, under `components`."""
    structs = [kind for one in operations for kind in _structs(one)]
    found, components = msgspec.json.schema_components([ApiError, *structs], ref_template=REF.replace("{}", "{name}"))
    schemas: dict[str, Any] = dict(components)
    answers = dict(zip(map(id, [ApiError, *structs]), found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        described = _operation(one, answers, schemas)
        paths.setdefault(f"{API}{one.path}", {})[one.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dragoman console", "version": version,
                 "description": "Sessions as canonical records and as the frames of every dialect."},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _structs(one: Operation) -> Iterator[object]:
    for kind in (one.answer, *one.events.values(), one.body):
        if kind is not None and not _is_pydantic(kind):
            yield kind


def _is_pydantic(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _operation(one: Operation, answers: dict[int, Any], schemas: dict[str, object]) -> dict[str, object]:
    described: dict[str, object] = {
        "operationId": _operation_id(one), "summary": one.summary,
        "parameters": [*_path_parameters(one), *_query_parameters(one.query)],
        "responses": {str(one.status): _answer(one, answers), **{
            status: {"description": words, "content": {JSON: {"schema": answers[id(ApiError)]}}}
            for status, words in FAILURES.items()}},
        "security": [] if one.is_public else [{"key": []}],
    }
    if one.for_admins:
        described["description"] = "For admins; with `auth: none`, for everybody who can connect."
    if one.body is not None or one.body_type != JSON:
        described["requestBody"] = {"required": True, "content": {one.body_type: _body(one, answers, schemas)}}
    return described


def _operation_id(one: Operation) -> str:
    words = [word for word in re.split(r"[^a-z0-9]+", one.path.lower()) if word]
    return "_".join((one.method.lower(), *words))


def _path_parameters(one: Operation) -> Iterator[dict[str, object]]:
    for name in _PLACE.findall(one.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    if one.media_type == SSE and "{id}" in one.path:
        yield LAST_EVENT_ID


def _query_parameters(query: type[ConsoleQuery] | None) -> Iterator[dict[str, object]]:
    if query is None:
        return
    described = query.model_json_schema()
    for name, schema in described.get("properties", {}).items():
        is_needed = name in described.get("required", ())
        yield {"name": name, "in": "query", "required": is_needed, "schema": _inlined(schema, described)}


def _inlined(schema: Any, described: dict[str, Any]) -> Any:
    """The schema with the definitions that it refers to in their places; a query has only small ones."""
    if isinstance(schema, list):
        return [_inlined(one, described) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return described["$defs"][schema["$ref"].rpartition("/")[2]]
    return {key: _inlined(value, described) for key, value in schema.items()}


def _answer(one: Operation, answers: dict[int, object]) -> dict[str, Any]:
    if one.events:
        return {"description": "Server-sent events; the data of each is JSON, by the name of the event.", "content": {
            SSE: {"schema": {"type": "string"},
                  "x-events": {name: answers[id(kind)] for name, kind in one.events.items()}},
        }}
    if one.answer is None and one.media_type == JSON:
        return {"description": "Done."}
    schema = answers[id(one.answer)] if one.answer is not None else {}
    return {"description": one.summary, "content": {one.media_type: {"schema": schema} if schema else {}}}


def _body(one: Operation, answers: dict[int, JsonValue], schemas: dict[str, object]) -> dict[str, Any]:
    if one.body is None:
        return {}
    if not _is_pydantic(one.body):
        return {"schema": answers[id(one.body)]}
    assert issubclass(one.body, BaseModel)
    described = one.body.model_json_schema(ref_template=REF.replace("{}", "{model}"))
    schemas.update(described.pop("$defs", {}))
    schemas[one.body.__name__] = described
    return {"schema": {"$ref": REF.format(one.body.__name__)}}
