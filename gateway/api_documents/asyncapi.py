"""AsyncAPI 3.0: the streams and sockets, with what is sent over them in either direction."""

from collections.abc import Iterable, Iterator
from typing import Any

from mappings.language import Schema

from .openapi import TITLE
from .route_groups import RouteGroup, ServedOperation
from .schema_library import SchemaLibrary, component_name


def asyncapi_document(groups: Iterable[RouteGroup], version: str, prefix: str = "") -> dict[str, Any]:
    """The document; messages of the same name and schema are described once for all channels."""
    library, channels, operations = SchemaLibrary(), dict[str, Any](), dict[str, Any]()
    messages: dict[str, Any] = {}
    for group in groups:
        for one in group.operations():
            channel = StreamChannel(library, one)
            if channel.sent or channel.received:
                channels[channel.id] = channel.described(messages, prefix)
                operations |= channel.operations()
    return {
        "asyncapi": "3.0.0",
        "info": {"title": TITLE, "version": version,
                 "description": "Requests and their answers are described by the OpenAPI document."},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": _without_discriminators({"messages": messages, "schemas": library.components()}),
    }


class StreamChannel:
    """One stream or socket: a path, what the server sends, and what it receives."""

    def __init__(self, library: SchemaLibrary, one: ServedOperation) -> None:
        self._one, group, answers = one, one.group, one.answers
        self.id = one.id
        wire = library.wire(group.table) if group.table is not None else None
        self.sent = group.sent(library, answers)
        self.received: dict[str, Schema] = {}
        for name, shape in answers.messages.items():
            self.received[name] = library.shape(shape, wire, group.name)
        self.replies = {name: library.shape(shape, wire, group.name) for name, shape in answers.replies.items()}

    @property
    def is_socket(self) -> bool:
        return bool(self.received)

    def described(self, messages: dict[str, Any], prefix: str) -> dict[str, Any]:
        """The channel; its messages are added to those of the document."""
        named = dict[str, Any]()
        for key, name, schema in self._all():
            message = f"{self._one.group.name}.{key}"
            if messages.setdefault(message, {"name": name, "payload": schema})["payload"] != schema:
                message = f"{self.id}.{key}"
                messages[message] = {"name": name, "payload": schema}
            named[key] = {"$ref": f"#/components/messages/{message}"}
        return {
            "address": f"{prefix}{self._one.path}", "messages": named,
            **({"summary": self._one.summary} if self._one.summary else {}),
            **({"parameters": {name: {} for name in self._one.path_names}} if self._one.path_names else {}),
            **({"bindings": {"ws": {"method": "GET"}}} if self.is_socket else {}),
        }

    def _all(self) -> Iterator[tuple[str, str, Schema]]:
        """The key in the document, the name on the wire, and the schema of each message."""
        for kind, named in (("sent", self.sent), ("received", self.received), ("reply", self.replies)):
            for name, schema in named.items():
                yield f"{kind}.{component_name(name)}", name, schema

    def operations(self) -> dict[str, Any]:
        """The server sends frames, and receives messages with their replies."""
        found: dict[str, Any] = {}
        if self.sent:
            found[f"send_{self.id}"] = self._operation("send", [f"sent.{component_name(one)}" for one in self.sent])
        for name in self.received:
            key = component_name(name)
            made = self._operation("receive", [f"received.{key}"])
            if name in self.replies:
                made["reply"] = {"channel": made["channel"], "messages": [self._message(f"reply.{key}")]}
            found[f"receive_{self.id}.{key}"] = made
        return found

    def _operation(self, action: str, keys: list[str]) -> dict[str, Any]:
        channel = {"$ref": f"#/channels/{self.id}"}
        return {"action": action, "channel": channel, "messages": [self._message(key) for key in keys]}

    def _message(self, key: str) -> dict[str, str]:
        return {"$ref": f"#/channels/{self.id}/messages/{key}"}


def _without_discriminators(value: Any) -> Any:
    """AsyncAPI has another form of them; the schemas say by constants which is which."""
    if isinstance(value, list):
        return [_without_discriminators(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _without_discriminators(one) for key, one in value.items()
            if not (key == "discriminator" and isinstance(one, dict) and "propertyName" in one)}
