"""A chat followed in pieces: `after_sequence` after every break of the line, and after the death of the server."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
import socketio

import gateway.model as m
from adapters.blade.server.projector import NUMBERS_PER_RECORD
from tests.support.connection_faults import KillableServerInLoop, breaking_proxy
from tests.support.dialect_tables import dialect, table
from tests.support.gateway_server import serving

DIALECTS = {"aap": {}, "blade": {}}


class Follower:
    """A page that keeps what it was told, and subscribes again after the last of it."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.heard: list[bytes] = []

    async def follow(self, address: str, words: str | None = None) -> None:
        """Until the chat is over or the line breaks."""
        sio, gone = socketio.AsyncClient(reconnection=False), asyncio.Event()
        sio.on("*", lambda event, payload: self._hear(event, payload, gone))
        sio.on("disconnect", lambda *_: gone.set())
        with suppress(socketio.exceptions.SocketIOError, aiohttp.ClientError, ConnectionError, TimeoutError):
            async with asyncio.timeout(60):
                await sio.connect(address, transports=["websocket"], wait_timeout=60)
                wanted = {"session_id": self.session, "after_sequence": self.last, "resume": True}
                await sio.emit("session:subscribe", wanted)
                if words is not None:
                    await sio.emit("chat:send", {"session_id": self.session, "message": words})
                await gone.wait()
        with suppress(Exception):
            await sio.disconnect()
        await sio.shutdown()

    def _hear(self, event: str, payload: Any, gone: asyncio.Event) -> None:
        if payload.get("stream_sequence", 0) > 0:
            assert payload["stream_sequence"] > self.last, "no repetition"
            self.heard.append(orjson.dumps([event, payload]))
        if self.is_over:
            gone.set()

    @property
    def last(self) -> int:
        return int(orjson.loads(self.heard[-1])[1]["stream_sequence"]) if self.heard else 0

    @property
    def is_over(self) -> bool:
        return bool(self.heard) and self.heard[-1].startswith(b'["chat:end"')


async def new_session(address: str) -> str:
    async with aiohttp.ClientSession() as http, http.post(f"{address}/api/sessions", json={"intent": "t"}) as response:
        return str((await response.json())["session_id"])


async def follow_to_the_end(follower: Follower, address: str) -> None:
    async with asyncio.timeout(45):
        while not follower.is_over:
            await follower.follow(address)


async def told_anew(session: str, address: str) -> list[bytes]:
    again = Follower(session)
    await again.follow(address)
    assert again.is_over
    return again.heard


@pytest.mark.parametrize("seed", range(2))
async def test_over_a_line_that_breaks(tmp_path: Path, seed: int) -> None:
    async with serving(tmp_path, log="sqlite", dialects=DIALECTS) as served, breaking_proxy(served.port, seed) as line:
        follower = Follower(await new_session(served.address))
        while not follower.heard:
            await follower.follow(line.address, "/think /slow 25 /tool clock and so on")
        await follow_to_the_end(follower, line.address)
        assert line.breaks
        assert follower.heard == await told_anew(follower.session, served.address), "the same, in the same order"


async def test_over_the_death_of_the_server(restartable_server: KillableServerInLoop) -> None:
    async with breaking_proxy(restartable_server.port, 3) as line:
        follower = Follower(await new_session(restartable_server.address))
        while not follower.heard:
            await follower.follow(line.address, "/slow 400")
        while line.breaks < 4:
            await follower.follow(line.address)
        assert not follower.is_over
        await restartable_server.die_and_come_back()
        await follow_to_the_end(follower, line.address)
        assert follower.heard == await told_anew(follower.session, restartable_server.address)


def test_what_was_said_elsewhere_has_no_numbers() -> None:
    """So that a number tells where in the log its event stands, however much a session was begun with."""
    outbound = dialect("blade").projector(table("blade"), dialect("blade").default_options)
    seed = tuple(m.SeedMessage(role=m.Role.USER, content="before") for _ in range(10_000))
    created = m.Record(seq=1, at=1.0, session_id="sess_1", event=m.SessionCreated(agent="demo", history=seed))
    assert outbound.feed(created) == ()
    [frame] = outbound.feed(m.Record(seq=2, at=2.0, session_id="sess_1", event=m.SessionUpdated(title="x")))
    assert frame.cursor == orjson.loads(frame.body)["stream_sequence"] == 2 * NUMBERS_PER_RECORD
