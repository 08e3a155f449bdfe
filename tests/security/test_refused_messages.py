"""A message that is refused has not been taken: the log has nothing of it, and no session was made for it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialect_tables import DIALECTS
from tests.support.dialects.blade.client import connect
from tests.support.dialects.zenflux.client import Client
from tests.support.gateway_server import Served, serving, until

OK, FULL, UNCERTAIN = "taken", "no room", "uncertain"
STATUS = {200: OK, 202: OK, 503: FULL, 504: UNCERTAIN}
Say = Callable[[Served, str, str], Awaitable[str]]


async def post(served: Served, path: str, body: Any) -> str:
    async with served.http.post(served.url(path), json=body) as answer:
        if answer.status == 503:
            assert int(answer.headers["Retry-After"]) > 0
        await answer.read()
        return STATUS.get(answer.status, f"{answer.status} {await answer.text()}")


async def aap(served: Served, session: str, words: str, stream: str = "delta") -> str:
    said = {"stream": stream, "messages": [{"role": "user", "content": words}]}
    return await post(served, f"/aap/sessions/{session}/turns", said)


async def aap_at_once(served: Served, session: str, words: str) -> str:
    return await aap(served, session, words, "none")


async def blade(served: Served, session: str, words: str) -> str:
    return await post(served, f"/api/sessions/{session}/chat", {"message": words})


async def blade_compact(served: Served, session: str, words: str) -> str:
    return await post(served, f"/api/sessions/{session}/compact", {})


async def blade_socket(served: Served, session: str, words: str) -> str:
    """A client that is disconnected before it is told anything knows nothing."""
    async with connect(served) as talker:
        gone = asyncio.Event()
        talker.sio.on("disconnect", lambda *_: gone.set())
        sending, leaving = asyncio.create_task(talker.send(session, words)), asyncio.create_task(gone.wait())
        done, late = await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in late:
            task.cancel()
        return acknowledged(sending.result()) if sending in done else UNCERTAIN


async def blade_socket_compact(served: Served, session: str, words: str) -> str:
    async with connect(served) as talker:
        return acknowledged(await talker.sio.call("chat:compact", {"session_id": session}, timeout=60))


def acknowledged(ack: Any) -> str:
    return {"overloaded": FULL, "timeout": UNCERTAIN, None: OK}.get(ack.get("code"), str(ack))


async def zenflux(served: Served, session: str, words: str, stream: bool = True) -> str:
    said = {"message": words, "userId": "local", "conversationId": session, "stream": stream}
    return await post(served, "/api/v1/chat", said)


async def zenflux_at_once(served: Served, session: str, words: str) -> str:
    return await zenflux(served, session, words, False)


async def zenflux_new(served: Served, session: str, words: str) -> str:
    return await post(served, "/api/v1/chat", {"message": words, "userId": "local", "stream": False})


async def zenflux_socket(served: Served, session: str, words: str) -> str:
    async with Client(served).chat() as chat:
        answer = await chat.ask("chat.send", message=words, user_id="local", conversation_id=session)
        return OK if answer["ok"] else {"OVERLOADED": FULL, "TIMEOUT": UNCERTAIN}[answer["error"]["code"]]


WAYS: dict[str, Say] = {
    "aap": aap, "aap at once": aap_at_once, "blade": blade, "blade compact": blade_compact,
    "blade socket": blade_socket, "blade socket compact": blade_socket_compact, "zenflux": zenflux,
    "zenflux at once": zenflux_at_once, "zenflux new": zenflux_new, "zenflux socket": zenflux_socket,
}


@asynccontextmanager
async def served_all(folder: Path, **limits: Any) -> AsyncIterator[tuple[Served, str]]:
    """A server of all dialects, and a session."""
    dialects = {name: {} for name in DIALECTS}
    async with (
        serving(folder, dialects=dialects, log="memory", limits=limits) as served,
        served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as answer,
    ):
        yield served, (await answer.json())["sessionId"]


async def everything(served: Served, session: str) -> tuple[int, bytes]:
    async with served.http.get(served.url(f"/replay/{session}")) as answer:
        return served.gateway.runtime.log.session_count, await answer.read()


@pytest.mark.parametrize("way", WAYS)
async def test_a_message_that_finds_no_place_for_its_stream_is_not_taken(tmp_path: Path, way: str) -> None:
    async with served_all(tmp_path, max_subscribers=1) as (served, session):
        before = await everything(served, session)
        async with served.http.get(served.url(f"/api/v1/cloud/sessions/{session}/events/stream")) as stream:
            await stream.content.readuntil(b"\n\n")
            assert await WAYS[way](served, session, "hello") == FULL
        assert await everything(served, session) == before
        assert await WAYS[way](served, session, "hello") == OK, "there is room again: the refusal keeps none"
        await until(lambda: served.gateway.hub.places == 0)


@pytest.mark.parametrize("way", ["aap at once", "blade", "zenflux at once", "zenflux new"])
async def test_whoever_is_cut_off_from_a_turn_that_was_begun_is_not_told_that_the_session_is_gone(
    tmp_path: Path, way: str,
) -> None:
    """While Redis is away, streams are torn: the turn was taken, and goes on or not."""
    async with served_all(tmp_path) as (served, session):
        saying = asyncio.create_task(WAYS[way](served, session, "/slow 100"))
        await until(lambda: served.gateway.hub.subscribers)
        served.gateway.hub.cut_all()
        assert await saying == UNCERTAIN
        async with served.http.get(served.url(f"/aap/sessions/{session}")) as answer:
            assert answer.status == 200
