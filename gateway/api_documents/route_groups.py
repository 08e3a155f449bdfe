"""The routes that are described together: those of a dialect, of the console, or of the server itself."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from aiohttp import web
from msgspec import Struct

import gateway.model as m
from gateway.http import Answers, RoutePolicy, answers_of, policy_of
from mappings.language import Schema, Table, WireSchemas, any_of

from .schema_library import SchemaLibrary

_PLACEHOLDER = re.compile(r"\{(\w+)(?::[^{}]*)?\}")


@lru_cache(maxsize=2048)
def _without_patterns(path: str) -> str:
    return _PLACEHOLDER.sub(r"{\1}", path)


class ErrorFields(Struct, kw_only=True):
    code: m.FaultCode
    message: str


class ErrorBody(Struct, kw_only=True):
    """The error of a route that belongs to no dialect."""

    error: ErrorFields


@dataclass(frozen=True, kw_only=True)
class RouteGroup:
    """Routes that share a table, or have none; `error` is the body of their errors if there is no table."""

    name: str
    routes: Sequence[web.RouteDef]
    table: Table | None = None
    error: type[Struct] = ErrorBody
    needs_key: bool = True
    mount: str = ""
    """Where the dialect is; errors of its routes elsewhere are those of the server."""

    def operations(self) -> Iterator["ServedOperation"]:
        """The operations of the routes that do something, in their order."""
        for route in self.routes:
            answers = answers_of(route.handler) or Answers()
            if not answers.is_absent and route.method != "OPTIONS":
                yield ServedOperation(self, route, answers)

    def sent(self, library: SchemaLibrary, answers: Answers) -> dict[str, Schema]:
        """By its name: the schema of everything that a stream or a socket carries to the client."""
        found = {name: library.of_type(kind) for name, kind in answers.events.items()}
        if self.table is None:
            return found
        wire = library.wire(self.table)
        found |= {name: wire.row(name) for name in answers.stream_rows}
        return found | (library.frames(self.name, wire, answers.frames) if answers.frames is not None else {})

    def errors(self, library: SchemaLibrary, wire: WireSchemas | None) -> dict[int, Schema]:
        """By status: the bodies of errors."""
        if wire is None:
            body = library.of_type(self.error)
            return dict.fromkeys(sorted({code.status for code in m.FaultCode}), body)
        found: dict[int, list[Schema]] = {}
        for code in m.FaultCode:
            status, schema = wire.error(code)
            found.setdefault(status, []).append(schema)
        return {status: any_of(found[status]) for status in sorted(found)}


@dataclass(frozen=True)
class ServedOperation:
    """One method of one path."""

    group: RouteGroup
    route: web.RouteDef
    answers: Answers

    @property
    def method(self) -> str:
        return self.route.method.lower()

    @property
    def path(self) -> str:
        """The path without the patterns of its parts."""
        return _without_patterns(self.route.path)

    @property
    def has_errors_of_server(self) -> bool:
        """Whether an error is spelled as the server does it, because the path is not below the mount of the dialect."""
        return self.group.table is not None and not f"{self.path}/".startswith(f"{self.group.mount}/")

    @property
    def path_names(self) -> list[str]:
        return _PLACEHOLDER.findall(self.route.path)

    @property
    def policy(self) -> RoutePolicy:
        return policy_of(self.route.handler)

    @property
    def id(self) -> str:
        """A name that no other operation has."""
        words = re.findall(r"\w+", self.path)
        return "_".join((self.method, *words, *(("slash",) if self.path.endswith("/") else ())))

    @property
    def summary(self) -> str:
        """What the operation does, in a sentence."""
        words = self.answers.summary or (self.route.handler.__doc__ or "").partition("\n\n")[0]
        return " ".join(words.split())
