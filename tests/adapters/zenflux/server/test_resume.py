"""A run that is heard in pieces: `session.resume` after every break of the line, and after the death of the server."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.support.connection_faults import BreakingProxy, KillableServerInLoop, breaking_proxy
from tests.support.dialects.zenflux.client import talking
from tests.support.gateway_server import serving

SOCKET = "/api/v1/ws/chat"
DIALECTS = {"aap": {}, "zenflux": {}}


class Listener:
    """An app that keeps the frames of one run as they came, and asks for those it has not had."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http
        self.run: str | None = None
        self.frames: list[bytes] = []

    async def listen(self, address: str, words: str | None = None) -> None:
        """Until the run is over or the line breaks."""
        with suppress(aiohttp.ClientError, ConnectionError, TimeoutError):
            async with self.http.ws_connect(f"{address}{SOCKET}", max_msg_size=0) as ws:
                await ws.send_json(self._request(words))
                while not self.is_over:
                    message = await ws.receive(timeout=60)
                    if message.type is not aiohttp.WSMsgType.TEXT:
                        return
                    self._take(message.data)

    def _request(self, words: str | None) -> dict[str, Any]:
        if words is not None:
            method, params = "chat.send", {"message": words, "user_id": "local"}
        else:
            method, params = "session.resume", {"session_id": self.run, "after_seq": len(self.frames)}
        return {"type": "req", "id": "1", "method": method, "params": params}

    def _take(self, text: str) -> None:
        said = orjson.loads(text)
        if said["type"] == "res":
            assert said["ok"], said
            self.run = said["payload"]["session_id"]
        elif said["seq"]:
            assert said["seq"] == len(self.frames) + 1, "no gap, no repetition"
            self.frames.append(text.encode())

    @property
    def is_over(self) -> bool:
        return bool(self.frames) and b'"event":"session_end"' in self.frames[-1]


async def heard_anew(http: aiohttp.ClientSession, address: str, run: str | None) -> list[bytes]:
    again = Listener(http)
    again.run = run
    await again.listen(address)
    assert again.is_over
    return again.frames


async def listen_to_the_end(listener: Listener, address: str) -> None:
    async with asyncio.timeout(30):
        while not listener.is_over:
            await listener.listen(address)


@pytest.mark.parametrize("seed", range(3))
async def test_over_a_line_that_breaks(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path, log="sqlite", dialects=DIALECTS) as served, breaking_proxy(served.port, seed) as line:
        listener = Listener(served.http)
        while listener.run is None:
            await listener.listen(line.address, "/think /slow 25 /title Trip /tool clock and so on")
        await listen_to_the_end(listener, line.address)
        assert line.breaks
        whole = await heard_anew(served.http, served.address, listener.run)
        assert listener.frames == whole, "byte for byte"
        assert sum(b'"content_delta"' in frame for frame in whole) > 5


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    timeout = aiohttp.ClientTimeout(total=60)
    async with breaking_proxy(restartable_server.port, 5) as line, aiohttp.ClientSession(timeout=timeout) as http:
        listener = Listener(http)
        while listener.run is None:
            await listener.listen(line.address, "/slow 400")
        await _until_some(line, listener)
        await restartable_server.die_and_come_back()
        await listen_to_the_end(listener, line.address)
        assert listener.frames == await heard_anew(http, restartable_server.address, listener.run)
        assert b'"status":"failed"' in listener.frames[-1]


async def _until_some(line: BreakingProxy, listener: Listener) -> None:
    while line.breaks < 3:
        await listener.listen(line.address)
    assert not listener.is_over


# -- the request ------------------------------------------------------------------------------------------------------

async def test_a_run_can_be_heard_by_a_second_client_from_anywhere(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as first, client.chat() as second:
        begun = await first.send("/slow 20")
        answer = await second.ask("session.resume", session_id=begun["session_id"], after_seq=2)
        assert answer["payload"] == {**begun, "after_seq": 2}
        await first.over(begun["session_id"])
        await second.until("session_end")
        assert second.events == first.events[2:]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_run_that_is_over_is_told_as_it_was(tmp_path: Path, stream: bool) -> None:
    async with talking(tmp_path) as client, client.chat() as first, client.chat() as second:
        run = await first.run("/title New /tool clock hello", stream=stream)
        await second.ask("session.resume", session_id=run.session_id, stream=stream)
        await second.until("session_end")
        assert second.events == first.events


async def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as chat, client.chat() as other:
        run = await chat.run("hello")
        count = len(chat.events)
        for params, code in (
            ({"session_id": "turn_none"}, "SESSION_NOT_FOUND"), ({}, "VALIDATION_ERROR"),
            ({"session_id": run.session_id, "after_seq": -1}, "VALIDATION_ERROR"),
            ({"session_id": run.session_id, "after_seq": count + 9}, "VALIDATION_ERROR"),
        ):
            refused = await other.ask("session.resume", **params)
            assert (refused["ok"], refused["error"]["code"]) == (False, code)
        begun = await chat.send("/slow 20")
        refused = await chat.ask("session.resume", session_id=run.session_id)
        assert refused["error"]["code"] == "SESSION_BUSY", "one run at a time on one connection"
        await chat.over(begun["session_id"])


async def test_who_resumes_can_say_the_next_thing(tmp_path: Path) -> None:
    async with talking(tmp_path) as client, client.chat() as first, client.chat() as second:
        begun = await first.send("/slow 1000")
        await second.ask("session.resume", session_id=begun["session_id"])
        run = await second.run("something else", conversation_id=begun["conversation_id"])
        assert run.words("text") == ["You said: something else"], "the run before it was stopped, as by the same client"
        assert (await first.until("session_end"))["status"] == "cancelled"
