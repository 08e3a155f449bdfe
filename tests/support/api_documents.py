"""Checks requests, responses and frames against the API documents. Objects are closed: a member that is not described
is a mistake of the document, or of the server."""

import re
from typing import Any

import jsonschema_rs
import orjson

from gateway.api_documents import ASYNCAPI, OPENAPI
from gateway.app import Gateway

DOCUMENT = "urn:document"
JSON, SSE = "application/json", "text/event-stream"
Schema = dict[str, Any]


def closed(schema: Any) -> Any:
    """The schema; its objects have no other members than those that it names."""
    if not isinstance(schema, dict):
        return schema
    made = {key: _closed_keyword(key, value) for key, value in schema.items()}
    if "properties" in made and made.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


def _closed_keyword(key: str, value: Any) -> Any:
    if key in ("properties", "schemas"):
        return {name: closed(one) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "allOf"):
        return [closed(one) for one in value]
    return closed(value) if key in ("items", "additionalProperties") else value


class DocumentChecker:
    """Finds the schema of what goes over the wire, and says what does not fit."""

    def __init__(self, openapi: dict[str, Any], asyncapi: dict[str, Any]) -> None:
        self.openapi, self.asyncapi = openapi, asyncapi
        self._templates = [(template, *_patterns(template)) for template in openapi["paths"]]
        self._validators: dict[str, Any] = {}
        self._components = openapi["components"]["schemas"] | asyncapi["components"]["schemas"]
        self._registries = {
            is_closed: jsonschema_rs.Registry([(DOCUMENT, {"components": {"schemas": {
                name: closed(one) if is_closed else one for name, one in self._components.items()}}})])
            for is_closed in (True, False)
        }

    def template(self, method: str, path: str) -> str:
        """The path of the document that this path is."""
        path = path.partition("?")[0]
        if path in self.openapi["paths"]:
            return path
        for number in (0, 1):
            for template, *patterns in self._templates:
                if patterns[number].fullmatch(path) and method.lower() in self.openapi["paths"][template]:
                    return template
        raise AssertionError(f"no path of the document is {path}")

    def request(self, method: str, template: str, body: bytes) -> list[str]:
        """What is wrong with the body of a request that was accepted; an operation without a body ignores it."""
        content = self._operation(method, template).get("requestBody", {}).get("content", {})
        if JSON not in content:
            return []
        return self._problems(content[JSON].get("schema", {}), orjson.loads(body), is_closed=False)

    def response(self, method: str, template: str, status: int, media_type: str, body: bytes) -> list[str]:
        """What is wrong with a response."""
        responses = self._operation(method, template)["responses"]
        if str(status) not in responses and status < 400:
            return [f"the document has no status {status}"]
        found = responses.get(str(status), responses["default"])
        if "$ref" in found:
            found = self.openapi["components"]["responses"][found["$ref"].rpartition("/")[2]]
        content = found.get("content", {})
        if not content:
            return [f"the document has no content, and there is {body[:80]!r}"] if body else []
        if media_type not in content and "*/*" not in content:
            return [f"the document has no {media_type}, but {', '.join(content)}"]
        if media_type != JSON:
            return []
        return self._problems(content[JSON].get("schema", {}), orjson.loads(body))

    def sent(self, method: str, template: str, name: str | None, value: Any) -> list[str]:
        """What is wrong with a frame that the server sent; without a name, it must be one of all."""
        return self._message(method, template, "sent", name, value)

    def received(self, method: str, template: str, name: str, value: Any) -> list[str]:
        """What is wrong with a message that a client sent over a socket."""
        return self._message(method, template, "received", name, value)

    def _message(self, method: str, template: str, kind: str, name: str | None, value: Any) -> list[str]:
        channel = next(one for key, one in self.asyncapi["channels"].items()
                       if one["address"] == template and key.startswith(f"{method.lower()}_"))
        messages = {key: self.asyncapi["components"]["messages"][one["$ref"].rpartition("/")[2]]
                    for key, one in channel["messages"].items()
                    if key.startswith(f"{kind}.") or (kind == "sent" and key.startswith("reply."))}
        fitting = [one["payload"] for one in messages.values() if name in (None, one["name"])]
        if not fitting:
            return [f"the document has no message '{name}' that is {kind}"]
        return self._problems(fitting[0] if len(fitting) == 1 else {"anyOf": fitting}, value, is_closed=kind == "sent")

    def _operation(self, method: str, template: str) -> dict[str, Any]:
        operation: dict[str, Any] = self.openapi["paths"][template][method.lower()]
        return operation

    def _problems(self, schema: Schema, value: Any, *, is_closed: bool = True) -> list[str]:
        key = f"{is_closed}{orjson.dumps(schema)!r}"
        if key not in self._validators:
            absolute = _absolute(closed(schema) if is_closed else schema)
            self._validators[key] = jsonschema_rs.Draft202012Validator(absolute, registry=self._registries[is_closed])
        return [f"{'.'.join(map(str, error.instance_path))}: {error.message[:300]}"
                for error in self._validators[key].iter_errors(value)]


def _absolute(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_absolute(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: f"{DOCUMENT}{one}" if key == "$ref" else _absolute(one) for key, one in schema.items()}


def _patterns(template: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    parts = [re.escape(part) for part in re.split(r"\{\w+\}", template)]
    return re.compile("[^/]+".join(parts)), re.compile(".*".join(parts))


def broken_references(document: dict[str, Any]) -> list[str]:
    """The references that lead nowhere."""
    return [reference for reference in _references(document) if not _leads_somewhere(document, reference)]


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for one in value.values() for found in _references(one)]
    return [found for one in value for found in _references(one)] if isinstance(value, list) else []


def _leads_somewhere(document: Any, reference: str) -> bool:
    at = document
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(at, dict) or step not in at:
            return False
        at = at[step]
    return True


def checker_of(gateway: Gateway) -> DocumentChecker:
    """The documents of this gateway."""
    return DocumentChecker(gateway.api_documents.make(OPENAPI), gateway.api_documents.make(ASYNCAPI))
