"""Every route and socket of every dialect refuses in plain words: the field, what was expected, and what came."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.dialect_parts import part
from tests.support.dialect_tables import DIALECTS, dialect
from tests.support.dialects.blade.client import connect
from tests.support.dialects.zenflux.client import Client
from tests.support.error_wording import unfit_words, wire_models
from tests.support.gateway_server import Served, serving

CLOUD = "/api/v1/cloud"
EVENTS = f"{CLOUD}/sessions/{{id}}/events"
TURNS = "/aap/sessions/{id}/turns"
BIG = b"123456789012345678901234567890"
TOO_BIG = f"{BIG.decode()} does not fit into 64 bits; write it as a string"
DEEP = b"[" * 200 + b"]" * 200
LONG = "y" * 600

TABLE: list[tuple[str, str, Any, str]] = [
    ("POST", "/aap/sessions", {}, "agent: is required"),
    ("POST", "/aap/sessions", {"agent": 7}, "agent: must be an object, not 7"),
    ("POST", "/aap/sessions", {"agent": {"name": "demo"}, "messages": [{"role": "cook"}]},
     "messages.0.role: must be 'system', 'user', 'assistant' or 'tool', not 'cook'"),
    ("POST", "/aap/sessions", {"agent": {"name": "demo"}, "tools": [{"name": "", "description": "d"}]},
     "tools.0.name: must not be empty; tools.0.parameters: is required"),
    ("POST", "/aap/sessions", b'{"agent":{"name":"demo"},"tools":[{"name":"t","description":"d","parameters":{"n":'
     + BIG + b"}}]}", f"tools.0.parameters.n: {TOO_BIG}"),
    ("POST", TURNS, {"messages": []}, "messages: must not be empty"),
    ("POST", TURNS, {"messages": [{"content": "x"}]}, "messages.0.role: is required"),
    ("POST", TURNS, {"messages": [{"role": "user", "content": 7}]},
     "messages.0.content: must be a string or an array, not 7"),
    ("POST", TURNS, {"messages": [{"role": "user", "content": [{"type": "film"}]}]},
     "messages.0.content.0.type: must be 'text', 'thinking', 'tool_use' or 'image', not 'film'"),
    ("POST", TURNS, {"messages": [{"role": "user", "content": [{"type": "image", "url": "ftp://me:pw@host"}]}]},
     "messages.0.content.0.url: expected an https:// address or a data:image/<type>;base64,<data>"),
    ("POST", TURNS, {"messages": [{"role": "user", "content": "x"}], "stream": "loud"},
     "stream: must be 'delta', 'message' or 'none', not 'loud'"),
    ("POST", f"{CLOUD}/sessions", {"agent": 7}, "agent: must be an id or an object, not 7"),
    ("POST", f"{CLOUD}/sessions", {"agent": "agent_demo", "metadata": {"n": 7}},
     "metadata.n: must be a string, not 7"),
    ("POST", f"{CLOUD}/sessions", {"agent": "agent_demo", "title": LONG},
     "title: must have at most 512 characters, not 600"),
    ("POST", f"{CLOUD}/sessions", {"agent": "agent_demo", "metadata": {"k": LONG}},
     "metadata: the value of 'k' must have at most 512 characters, not 600"),
    ("POST", f"{CLOUD}/agents", {"name": "a", "model": 7}, "model: must be a string or an object, not 7"),
    ("POST", f"{CLOUD}/agents", {"name": "a", "model": "demo", "tools": [{"type": "hammer"}]},
     "tools.0.type: must be 'agent_toolset_20260401', 'mcp_toolset' or 'custom', not 'hammer'"),
    ("POST", f"{CLOUD}/agents", {"name": "a", "model": "demo", "mcp_servers": [{"name": "m", "url": "nowhere"}]},
     "mcp_servers.0.url: must begin with http:// or https://, not 'nowhere'"),
    ("POST", EVENTS, {"events": []}, "events: must not be empty"),
    ("POST", EVENTS, {"events": [{"type": "user.song"}]}, "events.0.type: must be 'user.message', "),
    ("POST", EVENTS, {"events": [{"content": "x"}]}, "events.0.type: is required"),
    ("POST", EVENTS, {"events": [{"type": "user.message", "content": ""}]}, "events.0.content: must not be empty"),
    ("POST", EVENTS, {"events": [{"type": "user.message", "content": [{"type": "text", "text": 7}]}]},
     "events.0.content.0.text: must be a string, not 7"),
    ("POST", EVENTS, {"events": [{"type": "user.message", "content": [{"type": "text", "text": ""}]}]},
     "events.0.content: must have a text, an image or a document; all its blocks are empty"),
    ("POST", EVENTS, {"events": [{"type": "user.tool_confirmation", "tool_use_id": "x", "result": "maybe"}]},
     "events.0.result: must be 'allow' or 'deny', not 'maybe'"),
    ("POST", EVENTS, b'{"events":[{"type":"user.define_outcome","n":' + BIG + b"}]}", f"events.0.n: {TOO_BIG}"),
    ("POST", EVENTS, b'{"events":[{"type":"user.define_outcome","deep":' + DEEP + b"}]}",
     "events.deep: nested 203 levels deep; at most 150 levels are possible"),
    ("POST", f"{CLOUD}/vaults", {"display_name": ""}, "display_name: must not be empty"),
    ("POST", "/api/sessions", {"intent": 7}, "intent: must be a string, not 7"),
    ("POST", "/api/sessions", {"env": {"SECRET": 7}}, "env.SECRET: must be a string, not a number"),
    ("POST", "/api/sessions", {"anonymous": True}, "anonymous: there is no anonymous use here; leave it out"),
    ("PATCH", "/api/sessions/{id}/pin", {"pinned": "yes"}, "pinned: must be true or false, not 'yes'"),
    ("POST", "/api/sessions/{id}/chat", {"message": [{"type": "film"}]},
     "message.0.type: must be 'text', 'image_url' or 'file', not 'film'"),
    ("POST", "/api/sessions/{id}/chat", {"message": [{"type": "image_url", "image_url": {"url": "x"}}]},
     "message.0.image_url.url: must begin with http://, https:// or data:, not 'x'"),
    ("POST", "/api/sessions/{id}/chat", b'{"message":"x","output_schema":{"maximum":' + BIG + b"}}",
     f"output_schema.maximum: {TOO_BIG}"),
    ("POST", "/api/memories", {"content": "x", "type": "dream"},
     "type: must be 'feedback' or 'experience', not 'dream'"),
    ("POST", "/api/memories/batch", {"action": "delete", "ids": []}, "ids: must not be empty"),
    ("GET", "/api/memories?limit=many", None, "limit: must be a whole number, not 'many'"),
    ("POST", "/api/v1/chat", {"message": 7, "userId": "u"}, "message: must be a string, not 7"),
    ("POST", "/api/v1/chat", {"message": "x", "userId": 7}, "userId: must be a string, not 7"),
    ("POST", "/api/v1/chat", {"message": "x", "files": [{"file_size": -1}]},
     "files.0.file_size: must be at least 0, not -1"),
    ("POST", "/api/v1/chat", {"message": "x", "files": [{"file_id": "nope"}]},
     "files.0.file_id: there is no file 'nope'"),
    ("POST", "/api/v1/chat", {"message": "x", "conversation_id": "nope"}, "there is no conversation 'nope'"),
    ("POST", "/api/v1/chat", b'{"message":"x","variables":{"a":[' + BIG + b"]}}", f"variables.a.0: {TOO_BIG}"),
    ("GET", "/api/v1/conversations/nope", None, "there is no conversation 'nope'"),
    ("DELETE", "/api/v1/conversations/nope", None, "there is no conversation 'nope'"),
    ("GET", "/api/v1/conversations/nope/messages", None, "there is no conversation 'nope'"),
]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, dialects={name: {} for name in DIALECTS}) as served:
        yield served


async def made(served: Served) -> str:
    async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as response:
        return str((await response.json())["sessionId"])


async def call(served: Served, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
    headers = {"Content-Type": "application/json"}
    async with served.http.request(method, served.url(path), data=content, headers=headers) as response:
        text = await response.read()
        is_json = response.content_type == "application/json"
        return response.status, orjson.loads(text) if text and is_json else text


def speaks(path: str) -> str:
    """The dialect that is mounted above a path."""
    return max((name for name in DIALECTS if path.startswith(f"{dialect(name).mount}/")),
               key=lambda name: len(dialect(name).mount), default="")


def said(path: str, refusal: Any) -> str:
    return str(part(speaks(path), "rest_requests").error_text(refusal))


async def test_a_wrong_request_is_told_its_field(served: Served) -> None:
    session = await made(served)
    for method, path, body, told in TABLE:
        status, refusal = await call(served, method, path.replace("{id}", session), body)
        assert 400 <= status < 500, (path, body, refusal)
        words = said(path, refusal)
        assert words.startswith(told), (path, body)
        assert unfit_words(words) == []


def test_the_table_has_rows_of_every_dialect() -> None:
    assert {speaks(path) for _, path, _, _ in TABLE} == set(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
async def test_whatever_comes_to_any_route_is_refused_in_plain_words(served: Served, name: str) -> None:
    session, refused = await made(served), 0
    fields = sorted({field for model in wire_models(name) for field in model.model_fields} - {"anonymous"})
    bodies = [b"{", dict.fromkeys(fields, 2 ** 64 - 1), dict.fromkeys(fields, "ftp://x"),
              {field: [{"type": "x"}] for field in fields}, b'{"x":{"y":[' + BIG + b"]}}", b'{"x":' + DEEP + b"}"]
    for method, path in changes(served, name):
        for body in bodies:
            status, refusal = await call(served, method, re.sub(r"\{[^}]*\}", session, path), body)
            assert status < 500 or status == 501, (method, path, body, refusal)
            if 400 <= status < 500:
                refused += 1
                assert unfit_words(words := said(path, refusal)) == [], (method, path, body, words)
    assert refused > len(bodies)


def changes(served: Served, name: str) -> list[tuple[str, str]]:
    """The routes of a dialect that take a body."""
    routes = [(route.method, str(route.resource.canonical)) for route in served.gateway.web.router.routes()
              if route.resource is not None and route.method in ("POST", "PUT", "PATCH")]
    return [(method, path) for method, path in routes if speaks(path) == name and "socket.io" not in path]


async def test_frames_of_the_chat_socket_are_refused_by_name(served: Served) -> None:
    async with Client(served).chat() as chat:
        for params, told in (
            (b'{"message":7,"user_id":"u"}', "message: must be a string, not 7"),
            (b"{}", "user_id: is required"),
            (b"[]", "params: must be an object, not an array"),
            (b'{"message":"x","user_id":"u","files":[{"file_id":"nope"}]}', "files.0.file_id: there is no file 'nope'"),
            (b'{"message":"x","user_id":"u","variables":{"n":' + BIG + b"}}", f"params.variables.n: {TOO_BIG}"),
            (b'{"message":"x","user_id":"u","variables":{"n":' + DEEP + b"}}",
             "params.variables.n: nested 203 levels deep; at most 150 levels are possible"),
        ):
            await chat.ws.send_bytes(b'{"type":"req","id":"r","method":"chat.send","params":' + params + b"}")
            answer = await chat.next()
            assert (answer["id"], answer["ok"], answer["error"]["code"]) == ("r", False, "VALIDATION_ERROR")
            assert answer["error"]["message"] == told
        await chat.ws.send_bytes(b'{"type":"req","id":' + BIG + b',"method":"chat.send"}')
        answer = await chat.next()
        assert (answer["ok"], answer["error"]["message"]) == (False, f"id: {TOO_BIG}")


async def test_packets_of_socket_io_are_refused_by_name(served: Served) -> None:
    session = await made(served)
    async with connect(served) as talker:
        for said, told in (
            ({"message": 7}, "message: must be a string or an array, not 7"),
            ({"message": "x", "mode": "fast"}, "mode: must be 'planning' or 'executing', not 'fast'"),
        ):
            ack = await talker.sio.call("chat:send", {"session_id": session, **said}, timeout=30)
            assert (ack["status"], ack["message"]) == ("error", told)
        for body, told in (
            (b'{"message":"x","output_schema":{"maximum":' + BIG + b"}}", f"output_schema.maximum: {TOO_BIG}"),
            (b'{"output_schema":' + DEEP + b"}",
             "output_schema: nested 202 levels deep; at most 150 levels are possible"),
        ):
            before = len(talker.raw)
            await talker.sio.eio.send('2["chat:send",' + body.decode() + "]")
            await talker.until(lambda before=before: len(talker.raw) > before)
            assert talker.raw[-1][1]["message"] == told
