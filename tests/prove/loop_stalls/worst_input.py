"""The worst that each route can be sent: the largest bodies, the most items, the longest sessions."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import aiohttp
import orjson
from pydantic import AliasChoices, BaseModel

from gateway.http.json_io import FailFast
from gateway.json_values import MAX_JSON_ITEMS
from tests.support.dialect_tables import DIALECTS, dialect

MOST_BYTES = 10 * 1024 * 1024 - 1024
BODIES = ("POST", "PUT", "PATCH")
CLOUD = "/api/v1/cloud"


@dataclass(frozen=True)
class WorstRequest:
    """One request."""

    method: str
    route: str
    path: str
    name: str = ""
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    most_seconds: float = 30.0
    """After which a stream is left."""

    def __str__(self) -> str:
        return f"{self.method} {self.route} {self.name}"


def worst_requests(data: dict[str, Any]) -> Iterator[WorstRequest]:
    """Reading first, then the most that is taken, then every body for every route, then what leaves nothing behind."""
    routes = [(method, path) for method, path in data["routes"] if method not in ("HEAD", "OPTIONS")]
    known = {("GET", "/stall"), ("GET", "/data"), ("GET", "/api/v1/ws/chat"), ("GET", "/socket.io/")}
    routes = [route for route in map(tuple, routes) if route not in known]
    for method, route in routes:
        if method in ("GET", "*"):
            yield from _reading("GET" if method == "*" else method, route, data)
    yield from _valid(data)
    generic = bodies()
    for method, route in routes:
        if method in BODIES:
            path = filled(route, data)
            twice = f"{CLOUD}/v1" in route  # what is mounted twice is tried twice, with one body
            for name, body in ([*generic.items()][:1] if twice else generic.items()):
                yield WorstRequest(method, route, path, name, body, {"Content-Type": "application/json"})
    for method, route in routes:
        if method == "DELETE":
            yield WorstRequest(method, route, filled(route, data, spare=True))


def filled(route: str, data: dict[str, Any], *, spare: bool = False) -> str:
    """The route with a long session in it, or whatever else it names."""
    session = data["longs"].pop() if spare and len(data["longs"]) > 2 else data["longs"][0]
    values = {"{session}": session, "{path}": "a.txt", "{rest}": "/x", "{thread}": "root", "{parent}": "x_1"}
    if "/sessions/{id}" in route or "/conversations/{id}" in route:
        values["{id}"] = session
    elif "/session/{id}" in route:
        values["{id}"] = "turn_999"
    elif "scheduled-tasks" in route:
        values["{id}"] = data["task"]
    elif "/memories/{id}" in route:
        values["{id}"] = str(data["memory"])
    for name, value in values.items():
        route = route.replace(name, value)
    while "{" in route:
        before, _, rest = route.partition("{")
        route = f"{before}x_1{rest.partition('}')[2]}"
    return route


QUERIES = {
    "/aap/sessions/{id}/history": ("type=full", "type=compacted"),
    "/api/sessions": ("limit=10000", "q=nowhere", "limit=10000&offset=1900"),
    "/api/memories": ("keyword=nowhere", "limit=100&offset=4900", "topic=x"),
    "/api/scheduled-tasks/calendar": ("", "from=2026-01-01T00:00:00Z&to=2026-12-31T00:00:00Z"),
    "/api/v1/conversations": ("limit=100", "limit=100&offset=1900", "user_id=nobody"),
    "/api/v1/conversations/search": ("q=nowhere", "q=word", f"q={'x' * 4000}"),
    "/api/v1/conversations/{id}/messages": ("limit=200", "limit=200&order=desc", "limit=200&offset=1800"),
    f"{CLOUD}/sessions": ("limit=100", "limit=100&statuses[]=terminated", "limit=100&agent_id=nobody"),
    f"{CLOUD}/sessions/{{session}}/events": ("limit=100", "limit=100&order=desc", "limit=100&types[]=nothing"),
    f"{CLOUD}/sessions/{{session}}/events/stream": ("stream_start=replay",),
}


def _reading(method: str, route: str, data: dict[str, Any]) -> Iterator[WorstRequest]:
    """Each list with its largest page, with a filter that nothing fits, and from its far end."""
    long, seeded = data["longs"][0], data["seeded"][0]
    for query in QUERIES.get(route.replace("/cloud/v1", "/cloud"), ("",)):
        path = filled(route, data) + (f"?{query}" if query else "")
        seconds = 3.0 if route.endswith("stream") or "current" in route else 60.0
        yield WorstRequest(method, route, path, query[:40], most_seconds=seconds)
        if long in path:
            yield WorstRequest(method, route, path.replace(long, seeded), f"{query[:40]} seeded", most_seconds=seconds)


def bodies() -> dict[str, bytes]:
    """Bodies that any route may get."""
    names = sorted(set(_field_names()))
    share = MAX_JSON_ITEMS // len(names) // 2 - 2
    few = min(share, 15)
    return {
        "too many arrays": b'{"messages":[' + b"[]," * (MOST_BYTES // 3) + b"0]}",
        "most arrays": b'{"messages":[' + b"[]," * (MAX_JSON_ITEMS // 2 - 10) + b"0]}",
        "most members": orjson.dumps({str(number): 0 for number in range(MAX_JSON_ITEMS - 10)}),
        "wrong arrays in every field": orjson.dumps({name: [{}] * share for name in names}),
        "wrong maps in every field": orjson.dumps(
            {name: {str(number): {} for number in range(share)} for name in names}),
        "a long text in every field": orjson.dumps({name: "x, " * (MOST_BYTES // len(names) // 4) for name in names}),
        "one long text": orjson.dumps({"message": "word " * (MOST_BYTES // 5 - 10), "user_id": "u"}),
        "one long text of escapes": orjson.dumps({"content": '"\\' * (MOST_BYTES // 4 - 10)}),
        "commas in a text of escapes": orjson.dumps({"content": '",' * (MOST_BYTES // 3 - 10)}),
        "a long number": b'{"limit":' + b"9" * (MOST_BYTES - 20) + b"}",
        "deep": b'{"a":' * 140 + b"[" * few + b"]" * few + b"}" * 140,
        "too deep": b"[" * (MOST_BYTES // 2),
        "no JSON at its end": b'{"messages":[' + b"0," * (MAX_JSON_ITEMS - 10) + b"}",
        "white space": b" " * (MOST_BYTES - 2) + b"{}",
    }


for _name in DIALECTS:
    dialect(_name)  # its wire models are known from now on


def _field_names(above: type = FailFast) -> Iterator[str]:
    for model in above.__subclasses__():
        yield from _field_names(model)
        if issubclass(model, BaseModel):
            for name, known in model.model_fields.items():
                choices = known.validation_alias
                yield from (str(choice) for choice in choices.choices) if isinstance(choices, AliasChoices) else (name,)


# -- bodies that are taken --------------------------------------------------------------------------------------------

def _valid(data: dict[str, Any]) -> Iterator[WorstRequest]:
    """The most that a route takes: it is checked to its end, and carried out."""
    long = data["longs"][0]
    several = MAX_JSON_ITEMS // 8
    text = {"type": "text", "text": "x"}
    message = {"role": "user", "content": "x"}
    parameters = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(several)}}
    tool = {"name": "t", "description": "d", "parameters": {"type": "object"}}
    event = {"type": "user.message", "content": [text]}
    agent = {"agent": {"name": "demo"}}
    yield from (
        WorstRequest("POST", route, route.replace("{id}", long).replace("{session}", long), name, orjson.dumps(body))
        for route, name, body in (
            ("/aap/sessions", "most messages", {**agent, "messages": [message] * 10_000}),
            ("/aap/sessions", "too many messages", {**agent, "messages": [message] * (MAX_JSON_ITEMS // 3 - 10)}),
            (
                "/aap/sessions",
                "most blocks",
                {**agent, "messages": [{"role": "user", "content": [text] * several * 2}]},
            ),
            ("/aap/sessions", "most tools", {**agent, "tools": [{**tool, "name": f"t{n}"} for n in range(several)]}),
            ("/aap/sessions", "a large schema", {**agent, "tools": [{**tool, "parameters": parameters}]}),
            (
                "/aap/sessions/{id}/turns",
                "most blocks",
                {"messages": [{"role": "user", "content": [text] * several * 2}]},
            ),
            ("/aap/sessions/{id}/turns", "most messages", {"messages": [message] * several * 2}),
            (
                "/aap/sessions/{id}/turns",
                "a large image",
                {
                    "messages": [
                        {
                            "role": "user",
                            "content": [
                                {"type": "image", "url": "data:image/png;base64," + "AAAA" * (MOST_BYTES // 4 - 100)}
                            ],
                        }
                    ]
                },
            ),
            ("/api/sessions/{id}/chat", "most parts", {"message": [text] * several * 2}),
            ("/api/sessions/{id}/chat", "a large schema", {"message": "/json", "output_schema": parameters}),
            ("/api/sessions", "most variables", {"intent": "i", "env": {f"N{n}": "x" for n in range(several * 4)}}),
            (f"{CLOUD}/sessions/{{session}}/events", "most events", {"events": [event] * several}),
            (
                f"{CLOUD}/sessions/{{session}}/events",
                "most blocks",
                {"events": [{"type": "user.message", "content": [text] * several * 2}]},
            ),
            (
                f"{CLOUD}/sessions",
                "most resources",
                {
                    "agent": "agent_demo",
                    "environment_id": "env_default",
                    "resources": [{"type": "file", "file_id": "file_1", "path": f"/p{n}"} for n in range(500)],
                },
            ),
            (
                f"{CLOUD}/sessions",
                "variables",
                {"agent": "agent_demo", "environment_id": "env_default", "environment_variables": "A=b;" * 1_000_000},
            ),
            (
                f"{CLOUD}/agents",
                "a large schema",
                {"name": "n", "model": "m", "tools": [{"type": "custom", "name": "t", "input_schema": parameters}]},
            ),
            ("/api/sessions/{id}/replay", "", {}),
            ("/api/sessions/{id}/checkout", "", {"checkpoint_id": "cp_1"}),
        )
    )
    yield WorstRequest("PUT", "/api/sessions/{id}/files/{path}", f"/api/sessions/{long}/files/big.json", "a large file",
               orjson.dumps({"content": '{"a": [1, 2]}, ' * (MOST_BYTES // 20)}))
    yield from _forms(long, archive(data))


def archive(data: dict[str, Any]) -> bytes:
    """A ZIP that says it is a session: as many records as there may be, and none of them in order."""
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("manifest.json", orjson.dumps({
            "format": "dragoman.session", "version": 1, "model_version": 1, "session_id": "s", "agent": "demo",
            "records": 1,
        }))
        opened.writestr("records.jsonl", b'{"a":[' + b"[]," * 10_000_000 + b"0]}")
    return whole.getvalue()


def _forms(long: str, packed: bytes) -> Iterator[WorstRequest]:
    for route in ("/api/sessions/import", "/api/sessions/preview-import", f"{CLOUD}/files", "/api/v1/files/upload"):
        yield WorstRequest("POST", route, route, "form", packed, {"form": "file"})
        yield WorstRequest("POST", route, route, "lines before a form", b"\n" * MOST_BYTES, {
            "Content-Type": "multipart/form-data; boundary=b"})
    yield WorstRequest(
        "POST", "/api/sessions/{id}/upload", f"/api/sessions/{long}/upload", "form", packed, {"form": "files"}
    )


def form_of(shot: WorstRequest) -> aiohttp.FormData:
    made = aiohttp.FormData()
    made.add_field(shot.headers["form"], BytesIO(shot.body), filename="session.zip", content_type="application/zip")
    return made
