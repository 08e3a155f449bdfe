"""OpenAPI 3.1: every operation that is served, with its parameters, bodies and errors."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from pydantic import BaseModel

from gateway.http import JSON, SSE
from mappings.language import Schema, WireSchemas, any_of

from .route_groups import RouteGroup, ServedOperation
from .schema_library import SchemaLibrary

TITLE = "Dragoman"
KEY, SERVER = "key", "server"
SWITCHING = 101
LAST_EVENT_ID = {
    "name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string"},
    "description": "The id of the last event that the client has had: the stream goes on after it.",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 255},
    "description": "A request that is repeated with the same key is carried out once.",
}


def openapi_document(
    groups: Iterable[RouteGroup], version: str, prefix: str = "", title: str = TITLE,
) -> dict[str, Any]:
    """The document; every model is described once, under `components`."""
    library, paths, responses = SchemaLibrary(), dict[str, dict[str, Any]](), dict[str, Any]()
    groups = list(groups)
    for group in groups:
        describer = GroupDescriber(group, library)
        for operation in group.operations():
            for method in METHODS if operation.method == "*" else (operation.method,):
                paths.setdefault(operation.path, {}).setdefault(method, describer.operation(operation))
        responses |= describer.errors
    schemes = {"securitySchemes": {KEY: {"type": "http", "scheme": "bearer"}}} if _need_key(groups) else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version,
                 "description": "Streams and sockets are described by the AsyncAPI document."},
        "servers": [{"url": prefix or "/"}],
        "tags": [{"name": group.name} for group in groups],
        "paths": paths,
        "components": {"schemas": library.components(), "responses": responses, **schemes},
    }


METHODS = ("get", "post", "put", "patch", "delete")


def _need_key(groups: Iterable[RouteGroup]) -> bool:
    return any(group.needs_key for group in groups)


class GroupDescriber:
    """Describes the operations of one group."""

    def __init__(self, group: RouteGroup, library: SchemaLibrary) -> None:
        self._group, self._library = group, library
        self._wire: WireSchemas | None = library.wire(group.table) if group.table is not None else None
        self.errors = _error_responses(group.name, group.errors(library, self._wire))

    def operation(self, one: ServedOperation) -> dict[str, Any]:
        answers = one.answers
        described: dict[str, Any] = {
            "operationId": one.id, "tags": [self._group.name],
            **({"summary": one.summary} if one.summary else {}),
            "parameters": [*self._parameters(one)],
            "responses": self._responses(one),
        }
        if self._group.needs_key:
            described["security"] = [] if one.policy.is_public else [{KEY: []}]
        if one.policy.for_admins:
            described["description"] = "For admins; with `auth: none`, for everybody who can connect."
        if answers.reads is not None or answers.reads_type != JSON:
            described["requestBody"] = {
                "required": not answers.may_be_empty, "content": self._content(answers.reads, answers.reads_type)}
        return described

    @property
    def _prefix(self) -> str:
        return self._group.name if self._group.table is not None else ""

    # -- parameters ---------------------------------------------------------------------------------------------------

    def _parameters(self, one: ServedOperation) -> Iterator[dict[str, Any]]:
        for name in one.path_names:
            yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        yield from self._query(one)
        if one.policy.is_idempotent:
            yield IDEMPOTENCY_KEY
        if one.method == "get" and (one.answers.frames == "sse" or one.answers.events):
            yield LAST_EVENT_ID

    def _query(self, one: ServedOperation) -> Iterator[dict[str, Any]]:
        query = one.answers.query
        if isinstance(query, type):
            yield from _model_query(query)
        elif isinstance(query, str):
            assert self._wire is not None, f"'{query}' is the row of a table, and there is none"
            for name, schema in self._wire.body(query, {}).get("properties", {}).items():
                yield _query_parameter(name, schema)
        else:
            for name, shape in query.items():
                yield _query_parameter(name, self._library.shape(shape, self._wire, self._prefix))

    # -- answers ------------------------------------------------------------------------------------------------------

    def _responses(self, one: ServedOperation) -> dict[str, Any]:
        answers = one.answers
        found = {str(status): _response(HTTPStatus(status).phrase, self._content(shape))
                 for status, shape in {**answers.others}.items()}
        is_socket = answers.frames in ("json", "socketio")
        if is_socket:
            found[str(SWITCHING)] = _response("The connection becomes a socket: see the AsyncAPI document.", {})
        if not is_socket or answers.answer is not None:
            found[str(answers.status)] = _response(HTTPStatus(answers.status).phrase, self._success(one))
        owner = self._group.name
        if one.has_errors_of_server:
            owner = SERVER
            self.errors |= _error_responses(owner, RouteGroup(name=owner, routes=()).errors(self._library, None))
        errors = {name.removeprefix(f"{owner}."): {"$ref": f"#/components/responses/{name}"}
                  for name in self.errors if name.startswith(f"{owner}.")}
        return dict(sorted({**errors, **found}.items()))

    def _success(self, one: ServedOperation) -> dict[str, Any]:
        answers = one.answers
        content = self._content(answers.answer, answers.media_type)
        content |= {answers.bytes_type: {}} if answers.bytes_type else {}
        if answers.frames == "sse" or answers.events or answers.stream_rows:
            named = self._group.sent(self._library, answers)
            content[SSE] = {"x-events": named}  # OpenAPI 3.1 has no word for the events of a stream
        return content

    def _content(self, shape: Any, media_type: str = JSON) -> dict[str, Any]:
        if shape is None:
            return {} if media_type in (JSON, SSE) else {media_type: {}}
        schema: Schema = self._library.shape(shape, self._wire, self._prefix)
        return {media_type: {"schema": schema} if schema else {}}


def _error_responses(owner: str, bodies: dict[int, Schema]) -> dict[str, Any]:
    """By the name of a component: the responses of errors."""
    found = {f"{owner}.{status}": _response(HTTPStatus(status).phrase, {JSON: {"schema": body}})
             for status, body in bodies.items()}
    return {**found, f"{owner}.default": _response("Another error", {JSON: {"schema": any_of(bodies.values())}})}


def _response(words: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, **({"content": content} if content else {})}


def _query_parameter(name: str, schema: Schema, *, is_needed: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": is_needed, "schema": schema}


def _model_query(query: type[BaseModel]) -> Iterator[dict[str, Any]]:
    described = query.model_json_schema()
    for name, schema in described.get("properties", {}).items():
        is_needed = name in described.get("required", ())
        yield _query_parameter(name, _inlined(schema, described), is_needed=is_needed)


def _inlined(schema: Any, described: dict[str, Any]) -> Any:
    """The schema with the definitions that it refers to in their places; a query has only small ones."""
    if isinstance(schema, list):
        return [_inlined(one, described) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return described["$defs"][schema["$ref"].rpartition("/")[2]]
    return {key: _inlined(value, described) for key, value in schema.items()}
