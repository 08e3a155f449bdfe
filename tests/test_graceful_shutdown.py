"""SIGTERM with clients of all dialects at once: nothing new is begun, nothing is torn, everybody is told what to do."""

import asyncio
import gc
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import socketio
import yaml

from gateway import server
from gateway.config import load_config
from tests.support.connection_faults import blocks
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import PLAIN, until

CAS = "/api/v1/cloud/sessions"
NEW_CAS = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}


class Server:
    """What `dragoman serve` runs, in the loop of the test: it hears the signals of this process."""

    address = "http://127.0.0.1:18900"

    def __init__(self, folder: Path, **limits: float) -> None:
        self._file = folder / "config.yaml"
        settings = {**PLAIN, "dialects": {name: {} for name in DIALECTS}, "port": 18900, "limits": limits}
        self._file.write_text(yaml.safe_dump(settings))

    async def start(self) -> None:
        greeted = asyncio.Event()
        self._running = asyncio.create_task(
            server.run(load_config(self._file), watch=False, announce=lambda line: greeted.set()))
        await greeted.wait()

    def terminate(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    async def ended(self) -> int:
        return await asyncio.wait_for(self._running, 60)


@asynccontextmanager
async def server_in_loop(folder: Path, **limits: float) -> AsyncIterator[Server]:
    thresholds, server = gc.get_threshold(), Server(folder, **limits)
    await server.start()
    try:
        yield server
    finally:
        server._running.cancel()
        await asyncio.gather(server._running, return_exceptions=True)
        gc.set_threshold(*thresholds)


class Talk:
    """One client's stream: what it has heard so far, and whether it is over."""

    def __init__(self) -> None:
        self.body = b""
        self.code: int | None = None
        self.over = asyncio.Event()

    def hear(self, piece: bytes) -> None:
        self.body += piece

    async def until(self, words: bytes) -> None:
        await until(lambda: words in self.body or self.over.is_set())
        assert words in self.body, self.body[-2000:]

    async def ended(self) -> bytes:
        await asyncio.wait_for(self.over.wait(), 60)
        return self.body


class Clients:
    """Clients of all dialects; each stream is read in the background."""

    def __init__(self, address: str, http: aiohttp.ClientSession) -> None:
        self.address = address
        self.http = http
        self.tasks: list[asyncio.Task[None]] = []
        self.sios: list[Any] = []

    async def post(self, path: str, body: Any) -> tuple[int, dict[str, str], Any]:
        async with self.http.post(f"{self.address}{path}", json=body) as answer:
            text = await answer.read()
            return answer.status, dict(answer.headers), orjson.loads(text)

    def _read(self, reading: Any) -> None:
        self.tasks.append(asyncio.create_task(reading))

    async def session(self) -> str:
        body = {"agent": {"name": "demo", "tools": [{"name": "calc"}]}}
        return str((await self.post("/aap/sessions", body))[2]["sessionId"])

    # -- server-sent events ---------------------------------------------------------------------------------------

    def aap(self, session: str, words: str) -> Talk:
        body = {"stream": "delta", "messages": [{"role": "user", "content": words}]}
        return self._stream(self.http.post(f"{self.address}/aap/sessions/{session}/turns", json=body))

    def cas(self, session: str) -> Talk:
        return self._stream(self.http.get(f"{self.address}{CAS}/{session}/events/stream"))

    def chat(self, words: str) -> Talk:
        return self._stream(self.http.post(f"{self.address}/api/v1/chat", json={"message": words}))

    def _stream(self, asked: Any) -> Talk:
        talk = Talk()

        async def read() -> None:
            async with asked as response:
                assert response.status == 200, await response.text()
                while piece := await response.content.readany():
                    talk.hear(piece)
            talk.over.set()

        self._read(read())
        return talk

    # -- sockets --------------------------------------------------------------------------------------------------

    async def zenflux(self, words: str | None = None) -> Talk:
        talk, ws = Talk(), await self.http.ws_connect(f"{self.address}/api/v1/ws/chat", max_msg_size=0)
        if words is not None:
            params = {"message": words, "user_id": "local"}
            await ws.send_json({"type": "req", "id": "1", "method": "chat.send", "params": params})

        async def read() -> None:
            async for message in ws:
                talk.hear(message.data.encode() + b"\n")
            talk.code = ws.close_code
            talk.over.set()

        self._read(read())
        return talk

    async def blade(self, words: str | None = None) -> Talk:
        """A page that connects again by itself."""
        talk, sio = Talk(), socketio.AsyncClient(reconnection=True, reconnection_delay=0.1, reconnection_delay_max=0.5)
        sio.on("*", lambda event, payload: talk.hear(orjson.dumps([event, payload]) + b"\n"))
        sio.on("disconnect", lambda *_: talk.over.set())
        await sio.connect(self.address, wait_timeout=30)
        self.sios.append(sio)
        session = (await self.post("/api/sessions", {"intent": "t"}))[2]["session_id"]
        await sio.call("session:subscribe", {"session_id": session}, timeout=30)
        if words is not None:
            await sio.call("chat:send", {"session_id": session, "message": words}, timeout=30)
        return talk


@asynccontextmanager
async def clients(server: Server) -> AsyncIterator[Clients]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as http:
        all_of_them = Clients(server.address, http)
        try:
            yield all_of_them
        finally:
            for task in all_of_them.tasks:
                task.cancel()
            await asyncio.gather(*all_of_them.tasks, return_exceptions=True)
            for sio in all_of_them.sios:
                await sio.shutdown()


async def all_talking(them: Clients, words: str) -> dict[str, Talk]:
    """The same in every dialect; everybody has heard something of it."""
    watched = (await them.post(CAS, NEW_CAS))[2]["id"]
    await them.post(f"{CAS}/{watched}/events", {"events": [{"type": "user.message", "content": words}]})
    talks = {
        "aap": them.aap(await them.session(), words), "cas": them.cas(watched), "blade": await them.blade(words),
        "zenflux": await them.zenflux(words), "zenflux over http": them.chat(words),
    }
    for talk, word in zip(talks.values(), (b"text_delta", b"model_request_start", b"turn:patch", b"content_delta",
                                           b"content_delta"), strict=True):
        await talk.until(word)
    return talks


async def test_turns_finish_and_those_who_merely_watch_are_sent_away_at_once(tmp_path: Path) -> None:
    async with server_in_loop(tmp_path, drain_seconds=30) as server, clients(server) as them:
        waiting = await them.session()
        asked = await them.aap(waiting, "/permit").ended()
        call = orjson.loads(blocks(asked)[-2].partition(b"data: ")[2])["toolCallId"]
        answer = {"messages": [{"role": "tool_permission", "toolCallId": call, "granted": True}]}
        idle = {"cas": them.cas((await them.post(CAS, NEW_CAS))[2]["id"]), "cas, waiting": them.cas(waiting),
                "zenflux": await them.zenflux(), "zenflux, waiting": await them.zenflux("/continue"),
                "blade": await them.blade()}
        await idle["zenflux, waiting"].until(b"long_running_confirm")
        await idle["cas, waiting"].until(b"requires_action")
        busy = await all_talking(them, "/slow 60")
        server.terminate()

        for talk in idle.values():
            await talk.ended()
        assert not any(talk.over.is_set() for talk in busy.values()), "the others go on"
        assert b"\nretry: 1000\n" in idle["cas"].body and b"\nretry: 1000\n" in idle["cas, waiting"].body
        assert (idle["zenflux"].code, idle["zenflux, waiting"].code) == (1012, 1012)
        await _refuses_all_that_is_new(them, waiting, answer)

        await _all_told_to_the_end(busy)
        assert await server.ended() == 0

        await server.start()
        await until(lambda: all(sio.connected for sio in them.sios))
        status, _, body = await them.post(f"/aap/sessions/{waiting}/turns", answer)
        assert (status, body["stopReason"]) == (200, "end_turn"), "what waited has waited on"


async def _refuses_all_that_is_new(them: Clients, session: str, answer: Any) -> None:
    async with them.http.get(f"{them.address}/readyz") as ready:
        assert (ready.status, (await ready.json())["status"]) == (503, "draining")
    async with them.http.get(f"{them.address}/healthz") as alive:
        assert alive.status == 200
    said = {"messages": [{"role": "user", "content": "more"}]}
    refused = [
        await them.post(f"/aap/sessions/{session}/turns", said),
        await them.post(f"{CAS}/{session}/events", {"events": [{"type": "user.message", "content": "more"}]}),
        await them.post(f"/api/sessions/{session}/chat", {"message": "more"}),
        await them.post("/api/v1/chat", {"message": "more"}),
        await them.post(f"/aap/sessions/{session}/turns", answer),
    ]
    streams = (f"/aap/sessions/{session}/turns/current", f"{CAS}/{session}/events/stream",
               "/socket.io/?EIO=4&transport=polling")
    for path in streams:
        async with them.http.get(f"{them.address}{path}") as answer:
            refused.append((answer.status, dict(answer.headers), await answer.json()))
    assert [status for status, _, _ in refused] == [503] * 8
    assert {headers["Retry-After"] for _, headers, _ in refused} == {"2"}
    for _, _, body in refused[:4]:
        assert b"about to stop" in orjson.dumps(body)
    with pytest.raises(aiohttp.WSServerHandshakeError) as shut:
        await them.http.ws_connect(f"{them.address}/api/v1/ws/chat")
    assert (shut.value.status, shut.value.headers["Retry-After"]) == (503, "2")  # type: ignore[index]


async def _all_told_to_the_end(busy: dict[str, Talk]) -> None:
    bodies = {name: await talk.ended() for name, talk in busy.items()}
    assert bodies["aap"].endswith(b'event: turn_stop\ndata: {"stopReason":"end_turn"}\n\n')
    told = blocks(bodies["cas"])
    assert b"session.status_idle" in told[-2] and told[-1] == b"retry: 1000\n"
    assert b'"status":"completed"' in bodies["zenflux"].splitlines()[-1]
    assert busy["zenflux"].code == 1012
    assert bodies["zenflux over http"].endswith(b'event: done\ndata: {"type":"done","data":{"type":"done"}}\n\n')
    assert bodies["blade"].splitlines()[-1].startswith(b'["chat:end"')
    assert b'"status":"completed"' in bodies["blade"].splitlines()[-1]


async def test_turns_that_do_not_finish_are_ended_in_every_dialect(tmp_path: Path) -> None:
    async with server_in_loop(tmp_path, drain_seconds=0.3) as server:
        async with clients(server) as them:
            busy = await all_talking(them, "/slow 10000")
            server.terminate()
            bodies = {name: await talk.ended() for name, talk in busy.items()}
            assert await server.ended() == 0
        assert bodies["aap"].endswith(b'event: turn_stop\ndata: {"stopReason":"error"}\n\n')
        told = blocks(bodies["cas"])
        assert b"session.error" in told[-3] and b"session.status_idle" in told[-2] and told[-1] == b"retry: 1000\n"
        for name in ("zenflux", "zenflux over http"):
            assert b'"status":"failed"' in bodies[name] and b"The server stopped" in bodies[name], name
        assert busy["zenflux"].code == 1012
        assert b'["chat:end"' in bodies["blade"].splitlines()[-1] and b'"status":"failed"' in bodies["blade"]


async def test_a_second_signal_is_a_hurry(tmp_path: Path) -> None:
    async with server_in_loop(tmp_path, drain_seconds=3600) as server, clients(server) as them:
        talk = them.aap(await them.session(), "/slow 10000")
        await talk.until(b"text_delta")
        server.terminate()
        await asyncio.sleep(1)
        assert await _drains(them)
        assert not talk.over.is_set()
        server.terminate()
        assert await server.ended() == 0
        assert (await talk.ended()).endswith(b'data: {"stopReason":"error"}\n\n'), "ended, not torn"


async def _drains(them: Clients) -> bool:
    async with them.http.get(f"{them.address}/readyz") as answer:
        return answer.status == 503
