"""Model services for tests: what they stream, and a turn of an agent that asks one."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

import gateway.model as m
from gateway.backends.kinds import BackendContext, kind_of
from gateway.backends.llm.backend import LlmBackend
from gateway.client import AddressPolicy
from tests.support.backends.turn_driver import FakeTurn, kindly, play
from tests.support.client.byte_server import Answer, Server, serving, stream
from tests.support.client.byte_server import says as answers_with

KEY = "sk-a-key-that-nobody-may-see"


# -- chat completions -------------------------------------------------------------------------------------------------

def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **rest: Any) -> bytes:
    """One chunk of a chat completion as the documents of the protocol have it."""
    choice = {"index": 0, "delta": delta or {}, "logprobs": None, "finish_reason": finish}
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + orjson.dumps(whole | rest) + b"\n\n"


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0, written: int = 0) -> bytes:
    """The chunk that tells what was spent; it has no choices."""
    return chunk(choices=[], usage={
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached} | ({"cache_write_tokens": written} if written else {}),
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    })


def call(index: int, id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    """A piece of a tool call; the first one has an id and a name."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function} | ({"id": id, "type": "function"} if id else {})]}


DONE = b"data: [DONE]\n\n"


def chat(*chunks: bytes) -> Answer:
    """A whole answer: a role, the chunks, and the end."""
    return stream(chunk({"role": "assistant", "content": ""}), *chunks, DONE)


def complaint(message: str, kind: str, code: str | int | None = None) -> dict[str, Any]:
    """What goes wrong, as the documents of the protocol have it: as a body, or as a chunk in the middle."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refuses(status: int, message: str, kind: str, code: str | int | None = None, **headers: str) -> Answer:
    return answers_with(orjson.dumps(complaint(message, kind, code)), status, **headers)


def breaks(message: str, kind: str, code: str | int | None = None) -> bytes:
    return b"data: " + orjson.dumps(complaint(message, kind, code)) + b"\n\n"


def says(text: str) -> Answer:
    return chat(*(chunk({"content": word}) for word in re.findall(r"\S+\s*", text)), chunk(finish="stop"))


def calls(name: str, arguments: str = "{}", id: str = "call_a") -> Answer:
    return chat(chunk(call(0, id, name, arguments)), chunk(finish="tool_calls"))


# -- turns ------------------------------------------------------------------------------------------------------------

def made(kind: str, url: str, *, allow: Sequence[str] = (), **settings: Any) -> LlmBackend:
    """A backend; `allow` are the addresses that clients may name beside public ones."""
    given = {"url": url, "key": KEY, "model": "m", "attempts": 1, "first_byte_seconds": 20, "idle_seconds": 20}
    backend = kind_of(kind, Path()).make(given | settings, BackendContext(Path(), AddressPolicy(allow))).backend
    assert isinstance(backend, LlmBackend)
    return backend


def user(text: Any) -> m.HistoryEntry:
    return m.HistoryEntry(role=m.Role.USER, content=text, seq=1, at=1.0, turn_id="turn_1")


def turn_of(message: Any = "Hi", *, history: Sequence[m.HistoryEntry] = (), settings: m.Settings | None = None,
            answering: Any = kindly, agent: m.AgentCard | None = None, **command: Any) -> FakeTurn:
    return FakeTurn(
        m.SendMessage(content=message, **command), history=(*history, user(message)), settings=settings,
        answering=answering, agent=agent or m.AgentCard(name="agent"),
    )


async def talked(
    kind: str, answers: Sequence[Answer], turn: FakeTurn | None = None, **settings: Any,
) -> tuple[FakeTurn, Server]:
    """A turn of an agent of this kind, played to its end against a service that answers so."""
    async with serving(*answers) as server, backend_at(kind, server, **settings) as backend:
        async with asyncio.timeout(30):
            return await play(backend, turn or turn_of()), server


@asynccontextmanager
async def backend_at(kind: str, server: Server, **settings: Any) -> AsyncIterator[LlmBackend]:
    backend = made(kind, server.url, **settings)
    try:
        yield backend
    finally:
        await backend.close()
