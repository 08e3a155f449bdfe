"""A full disk under a running server: turns end with a fault, commands are refused, reads go on, nothing is lost."""

import asyncio
import os
import resource
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio

from gateway.log.verify import verify
from gateway.model import FaultCode, TurnEnded
from tests.crash.server import Server, server
from tests.crash.talking import blocks

Spoil = Callable[[Server], Callable[[], None]]
WORDS = "nothing can be stored just now"


def limit(served: Server) -> Callable[[], None]:
    """The system lets the process make no file larger than its log is now; gives back how to lift that."""
    assert served.pid is not None
    size = served.database.with_name(f"{served.database.name}-wal").stat().st_size
    before = resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def lift() -> None:
        resource.prlimit(served.pid or 0, resource.RLIMIT_FSIZE, before)

    return lift


def fill(served: Server) -> Callable[[], None]:
    """Somebody else takes the rest of the disk."""
    filler = served.database.parent / "filler"
    with filler.open("wb", buffering=0) as target:
        try:
            while True:
                target.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == 28, error
    return filler.unlink


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own for the data."""
    data = folder / "data"
    data.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(data)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(data)], check=True)


@contextmanager
def any_disk(folder: Path) -> Iterator[Path]:
    yield folder


def _may_mount() -> bool:
    """Whether this machine lets us have a disk of our own; where it does not, a limit of the system has to do."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0


WAYS = {"limit": (any_disk, limit), **({"disk": (small_disk, fill)} if _may_mount() else {})}


class Talk:
    """One session of one dialect: how something is said in it, how a refusal looks, and what can be read."""

    def __init__(self, http: aiohttp.ClientSession, address: str) -> None:
        self.http = http
        self.address = address
        self.session = ""

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.http.request(method, f"{self.address}{path}", json=body) as answer:
            return answer.status, await answer.json(content_type=None)


class Aap(Talk):
    async def create(self) -> None:
        self.session = (await self.call("POST", "/aap/sessions", {"agent": {"name": "demo"}}))[1]["sessionId"]

    async def say(self, words: str) -> tuple[int, Any]:
        body = {"stream": "none", "messages": [{"role": "user", "content": words}]}
        return await self.call("POST", f"/aap/sessions/{self.session}/turns", body)

    reads = "/aap/sessions/{}/history?type=full"

    def is_refusal(self, told: Any) -> bool:
        return WORDS in told["error"]


class Cas(Talk):
    async def create(self) -> None:
        body = {"agent": "agent_demo", "environment": {"config": {"type": "cloud"}}}
        self.session = (await self.call("POST", "/api/v1/cloud/sessions", body))[1]["id"]

    async def say(self, words: str) -> tuple[int, Any]:
        body = {"events": [{"type": "user.message", "content": words}]}
        return await self.call("POST", f"/api/v1/cloud/sessions/{self.session}/events", body)

    reads = "/api/v1/cloud/sessions/{}/events"

    def is_refusal(self, told: Any) -> bool:
        return told["error"]["type"] == "overloaded_error" and WORDS in told["error"]["message"]


class Blade(Talk):
    async def create(self) -> None:
        self.session = (await self.call("POST", "/api/sessions", {"intent": "full"}))[1]["session_id"]

    async def say(self, words: str) -> tuple[int, Any]:
        sio = socketio.AsyncClient(reconnection=False, handle_sigint=False)
        await sio.connect(self.address, transports=["websocket"], wait_timeout=10)
        try:
            ack = await sio.call("chat:send", {"session_id": self.session, "message": words}, timeout=10)
        finally:
            await sio.disconnect()
            await sio.shutdown()
        return (200 if ack["status"] == "ok" else 503), ack

    reads = "/api/sessions/{}/messages"

    def is_refusal(self, told: Any) -> bool:
        return told["status"] == "error" and WORDS in str(told)


class Zenflux(Talk):
    async def create(self) -> None:
        self.session = (await self.call("POST", "/api/v1/conversations?user_id=local"))[1]["data"]["id"]

    async def say(self, words: str) -> tuple[int, Any]:
        return await self.call("POST", "/api/v1/chat", {
            "message": words, "userId": "local", "conversationId": self.session, "stream": False})

    reads = "/api/v1/conversations/{}/messages"

    def is_refusal(self, told: Any) -> bool:
        return told["code"] == 503 and WORDS in told["message"]


TALKS = (Aap, Cas, Blade, Zenflux)


@pytest.fixture(params=WAYS)
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Server, Spoil]]:
    disk, spoil = WAYS[request.param]
    with disk(tmp_path) as folder, server(folder) as served:
        served.start()
        await asyncio.to_thread(served.wait_ready)
        yield served, spoil


async def _refused(talk: Talk) -> None:
    """In a while, and in the dialect's own words; until trouble is noticed something may still be taken."""
    async with asyncio.timeout(20):
        while True:
            status, told = await talk.say("hello")
            if status == 503 and talk.is_refusal(told):  # type: ignore[attr-defined]
                return
            await asyncio.sleep(0.05)


async def _works(talk: Talk) -> None:
    async with asyncio.timeout(20):
        while True:
            status, _ = await talk.say("hello")
            if status in (200, 202):
                return
            await asyncio.sleep(0.1)


@pytest.mark.timeout(180)
async def test_a_full_disk_harms_nothing_and_is_survived(served: tuple[Server, Spoil]) -> None:
    server, spoil = served
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:
        talks = [kind(http, server.address) for kind in TALKS]
        for talk in talks:
            await talk.create()
            await _works(talk)
        before = server.logs([talk.session for talk in talks])
        watcher = Aap(http, server.address)
        await watcher.create()
        body = {"stream": "delta", "messages": [{"role": "user", "content": "/slow 100000"}]}
        async with http.post(f"{server.address}/aap/sessions/{watcher.session}/turns", json=body) as stream:
            told = blocks(stream.content)
            for _ in range(5):
                await anext(told)
            relieve = spoil(server)
            for talk in talks:
                await _refused(talk)
                status, shown = await talk.call("GET", talk.reads.format(talk.session))  # type: ignore[attr-defined]
                assert status == 200, shown
            status, _ = await watcher.call("GET", f"/aap/sessions/{watcher.session}")
            assert status == 200, "even where the end of a turn waits to be stored"
            relieve()
            rest = [block async for block in told]
        assert rest[-1] == 'event: turn_stop\ndata: {"stopReason":"error"}', "whoever listened is told the end"
        for talk in talks:
            await _works(talk)
        status, _ = await watcher.say("hello")
        assert status == 200
    logs = server.logs([*before, watcher.session])
    for session, records in before.items():
        assert list(logs[session][:len(records)]) == list(records), "nothing stored was harmed"
    ends = [record.event for record in logs[watcher.session] if isinstance(record.event, TurnEnded)]
    assert [end.fault.code if end.fault else None for end in ends] == [FaultCode.OVERLOADED, None]
    assert verify(server.database).problems == []
