"""Requests that nobody expects: every route of every dialect, with spoiled paths, queries, headers and bodies."""

import gzip
import inspect
import pkgutil
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, quote_from_bytes

import orjson
import yaml
from aiohttp import web
from pydantic import BaseModel, PydanticUserError

import adapters

from .values import KnownIds, ValueMaker

HOLE = re.compile(r"\{[^}]+\}")
LITERAL = re.compile(r'"([a-z][a-z_]{1,24}(?:\[[a-z]+\])?)"')
FORMS = re.compile(r"/(upload|files|import|preview-import)(/|$)")
"""Where files are sent."""
CORPUS = yaml.safe_load(Path(__file__).with_name("corpus.yaml").read_text())
CORPUS_SHARE = 0.25
TIMES = ("from", "to", "type", "after", "q", "title")
BODIES = ("POST", "PUT", "PATCH", "DELETE")
HEADERS = {
    "Content-Type": ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                     "multipart/form-data; boundary=x", "application/json; charset=utf-16", "é", ""),
    "Content-Encoding": ("gzip", "deflate", "br", "zstd", "identity", "gzip, gzip", "nonsense"),
    "Accept": ("text/event-stream", "application/json", "*/*", "text/html", "q=;"),
    "Last-Event-ID": ("0", "-1", "1.2", "9" * 40, "x", "9" * 5000, ""),
    "Idempotency-Key": ("a", "b", "x" * 300, "é", ""),
    "Range": ("bytes=0-", "bytes=-1", "bytes=5-1", "bytes=" + "9" * 40 + "-", "lines=1-2", "bytes=a-b"),
    "If-Range": ("x",), "If-None-Match": ("*", '"a"', "x"), "If-Modified-Since": ("Thu, 01 Jan 1970 00:00:00 GMT", "x"),
    "Authorization": ("Bearer x", "Basic eDp4", "Bearer", "Bearer " + "x" * 5000),
    "X-Request-Id": ("x" * 500, "a b"), "X-HTTP-Method-Override": ("DELETE",), "Cookie": ("a=b; ;=;",),
}


@dataclass(frozen=True)
class Request:
    """One request as it is to be sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    place: str = ""
    """The route that it is for."""

    def __str__(self) -> str:
        shown = self.body if self.body is None or len(self.body) < 300 else self.body[:300] + b" ..."
        return f"{self.method} {self.path[:300]} {dict(self.headers)} {shown!r}"


@dataclass
class Route:
    """A place that can be asked, and the models of what may be said there."""

    method: str
    path: str
    models: list[dict[str, Any]] = field(default_factory=list)
    words: Sequence[str] = ()
    """Names of what may stand in the query."""

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def routes_of(app: web.Application) -> list[list[Route]]:
    """Every route with the wire models that its handler names, or all of its dialect's; those of one code together."""
    by_package = {name: list(_schemas(name)) for name in _packages()}
    found: dict[Any, list[Route]] = {}
    for route in app.router.routes():
        if route.resource is None or route.method == "HEAD":
            continue
        handler = inspect.unwrap(route.handler)
        package = ".".join(handler.__module__.split(".")[:2])
        models = list(_named(handler)) or by_package.get(package, [])
        made = Route(route.method, route.resource.canonical, models if route.method in BODIES else [],
                     query_words(handler.__module__))
        found.setdefault(getattr(handler, "__code__", handler), []).append(made)
    return list(found.values())


@cache
def query_words(module: str) -> list[str]:
    """Words that stand in quotes where a module reads a query."""
    lines = inspect.getsource(import_module(module)).splitlines()
    return sorted({word for line in lines if "query" in line or "request, " in line for word in LITERAL.findall(line)})


class RequestMaker:
    """Makes the request of each number."""

    def __init__(self, routes: Sequence[Sequence[Route]], known: KnownIds) -> None:
        self._routes = routes
        self._known = known
        self._corpus = [(given, _place(given, routes)) for given in CORPUS]

    def make(self, chance: Random) -> Request:
        values = ValueMaker(chance, self._known)
        if chance.random() < CORPUS_SHARE:
            return self._taken(*chance.choice(self._corpus), values)
        route = chance.choice(chance.choice(self._routes))
        if route.method == "DELETE" and chance.random() < 0.8:  # else there would soon be nothing to ask for
            route = chance.choice(chance.choice(self._routes))
        path = HOLE.sub(lambda hole: self._segment(values, route.path[:hole.start()]), route.path)
        if chance.random() < 0.5:
            path += "?" + "&".join(self._pair(route, values) for _ in range(chance.randrange(4)))
        headers = tuple((name, chance.choice(HEADERS[name])) for name in HEADERS if chance.random() < 0.03)
        method = route.method if route.method != "*" else chance.choice(("GET", *BODIES))
        body = self._body(route, values) if method in BODIES or chance.random() < 0.02 else None
        if body is not None and body.startswith(b"--x") and chance.random() < 0.9:
            headers = (*((name, said) for name, said in headers if name != "Content-Type"),
                       ("Content-Type", "multipart/form-data; boundary=x"))
        if body is not None and ("Content-Encoding", "gzip") in headers and chance.random() < 0.5:
            body = gzip.compress(body)
        return Request(method, path, headers, body, route.name)

    def _taken(self, given: dict[str, Any], place: str, values: ValueMaker) -> Request:
        """One of the corpus, two times of five as it is."""
        path = HOLE.sub(lambda hole: quote(values.id_of(hole[0].strip("{}")), safe="") or "x", given["path"])
        body, spoils = given.get("body"), values.chance.choice((0, 0, 1, 1, 2))
        for _ in range(spoils if body is not None else 0):
            body = values.spoiled(body)
        if body is None:
            return Request(given["method"], path + self._values(spoils, values), place=place)
        encoded = values.encoded(body) if spoils else orjson.dumps(body)
        return Request(given["method"], path, (("Content-Type", "application/json"),), encoded, place)

    def _values(self, count: int, values: ValueMaker) -> str:
        """Something said twice in a query is said otherwise."""
        return "".join(f"&{values.chance.choice(TIMES)}={quote(values.word()[:6000], safe='', errors='replace')}"
                       for _ in range(count))

    def _segment(self, values: ValueMaker, before: str) -> str:
        words = [word for word in before.split("/") if word and "{" not in word]
        return quote(values.id_of(words[-1] if words else "")[:2000].encode("utf-8", "surrogatepass"), safe="") or "x"

    def _pair(self, route: Route, values: ValueMaker) -> str:
        name = values.chance.choice(route.words or ("limit", "after"))
        said = values.word()[:6000].encode("utf-8", "surrogatepass")
        if values.chance.random() < 0.05:
            said += bytes([values.chance.randrange(256)])
        return f"{name}={quote_from_bytes(said, safe='')}"

    def _body(self, route: Route, values: ValueMaker) -> bytes:
        if values.chance.random() < (0.6 if FORMS.search(route.path) else 0.03):
            return _form(values)
        made = values.of(values.chance.choice(route.models)) if route.models else values.anything()
        for _ in range(values.chance.choice((0, 0, 0, 1, 1, 2))):
            made = values.spoiled(made)
        return values.encoded(made)


def _place(given: dict[str, Any], routes: Sequence[Sequence[Route]]) -> str:
    """The name of the route that a request of the corpus is for."""
    method, path = given["method"], given["path"].partition("?")[0]
    return next(route.name for alike in routes for route in alike
                if route.method == method and re.fullmatch(HOLE.sub("[^?]+", route.path), path))


def _form(values: ValueMaker) -> bytes:
    """A form with a file in it, now and then cut off."""
    name = values.chance.choice(("file", "file", "files", "files", "paths", "name", ""))
    said = values.word()[:500].encode("utf-8", "surrogatepass").replace(b"\r\n", b"")
    whole = (b'--x\r\nContent-Disposition: form-data; name="' + name.encode() + b'"; filename="' + said[:80]
             + b'"\r\nContent-Type: text/plain\r\n\r\n' + said + b"\r\n--x--\r\n")
    return whole if values.chance.random() < 0.6 else whole[:values.chance.randrange(len(whole))]


# -- models -----------------------------------------------------------------------------------------------------------

def _named(handler: Any) -> Iterator[dict[str, Any]]:
    """The models that a handler's code has the names of, also as `wire.Name`."""
    code = getattr(handler, "__func__", handler)
    names = code.__code__.co_names
    for name in names:
        found = code.__globals__.get(name)
        inner = [vars(found).get(other) for other in names] if inspect.ismodule(found) else [found]
        for model in inner:
            if inspect.isclass(model) and issubclass(model, BaseModel) and model is not BaseModel:
                yield from _schema(model)


def _packages() -> list[str]:
    return [f"adapters.{found.name}" for found in pkgutil.iter_modules(adapters.__path__)]


def _schemas(package: str) -> Iterator[dict[str, Any]]:
    """All models of the modules of a dialect whose name says that they are about the wire."""
    for found in pkgutil.iter_modules(import_module(package).__path__):
        if "wire" in found.name:
            for model in vars(import_module(f"{package}.{found.name}")).values():
                if inspect.isclass(model) and issubclass(model, BaseModel) and model is not BaseModel:
                    yield from _schema(model)


def _schema(model: type[BaseModel]) -> Iterator[dict[str, Any]]:
    try:
        yield model.model_json_schema()
    except PydanticUserError:  # it has something in it that no schema can tell
        return
