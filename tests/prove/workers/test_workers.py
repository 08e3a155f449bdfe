"""`dragoman serve --workers 2` with Redis: streams and requests while workers are replaced, and when one is killed."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio
import yaml

from tests.support.free_ports import free_port
from tests.support.redis_server import RedisServer

HANG = 180.0
"""Only something that hangs takes so many seconds."""


class Pool:
    """A parent in a process of its own, its address, and what it logs."""

    def __init__(self, process: subprocess.Popen[str], address: str, log: Path) -> None:
        self.process, self.address, self._log = process, address, log

    @property
    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    async def logged(self, event: str) -> None:
        """Wait until the parent has logged the event."""
        async with asyncio.timeout(HANG):
            while f'"event":"{event}"' not in self._log.read_text():  # noqa: ASYNC110  # a process writes the file
                await asyncio.sleep(0.05)


@contextmanager
def pool_of_two(folder: Path, redis: RedisServer) -> Iterator[Pool]:
    port = free_port()
    file, log = folder / "config.yaml", folder / "log.txt"
    file.write_text(yaml.safe_dump({
        "log": redis.url, "port": port, "agents": {"demo": {"backend": "demo"}},
        "dialects": {"aap": None, "blade": None}, "logging": {"format": "json"},
        "limits": {"drain_seconds": 60},
    }))
    with log.open("w") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "serve", "--config", str(file), "--workers", "2"],
            stdout=subprocess.PIPE, stderr=written, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            assert process.stdout is not None
            while "workers: 2" not in (line := process.stdout.readline()):
                assert line, log.read_text()
            yield Pool(process, f"http://127.0.0.1:{port}/aap", log)
        finally:
            try:
                if process.poll() is None:
                    process.terminate()
                    assert process.wait(HANG) == 0, log.read_text()
            finally:
                process.kill()
                process.stdout.close()


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[Pool]:
    redis = RedisServer(tmp_path / "redis")
    redis.start()
    try:
        with pool_of_two(tmp_path, redis) as pool:
            await pool.logged("workers_ready")
            yield pool
    finally:
        redis.stop()


class Refused(Exception):
    """The server did not begin a turn."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


async def new_session(web: aiohttp.ClientSession, pool: Pool) -> str:
    async with web.post(f"{pool.address}/sessions", json={"agent": {"name": "demo"}}) as response:
        return str((await response.json())["sessionId"])


async def turn(web: aiohttp.ClientSession, pool: Pool, session: str, text: str) -> tuple[str, str]:
    """What a turn says: the text of its deltas, and why it stopped."""
    body = {"stream": "delta", "messages": [{"role": "user", "content": text}]}
    said, stop = "", "torn"
    async with web.post(f"{pool.address}/sessions/{session}/turns", json=body) as response:
        if response.status != 200:
            raise Refused(response.status, await response.text())
        async for line in response.content:
            if line.startswith(b"data: "):
                data = json.loads(line[6:])
                said += data.get("delta", "")
                stop = data.get("stopReason", stop)
    return said, stop


async def test_no_stream_is_torn_and_no_connection_is_lost_while_workers_are_replaced(pool: Pool) -> None:
    before = set(pool.workers)
    over = asyncio.Event()

    async def talk(number: int) -> int:
        """Send messages until the workers are replaced, each on a connection of its own; how many."""
        turns = 0
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as web:
            session = await new_session(web, pool)
            while not over.is_set():
                text = f"message {turns} of {number}"
                assert await until_served(web, pool, session, text) == (f"You said: {text}", "end_turn")
                turns += 1
        return turns

    async with aiohttp.ClientSession() as web, asyncio.timeout(HANG):
        sessions = [await new_session(web, pool) for _ in range(6)]
        slow = [asyncio.create_task(turn(web, pool, session, "/slow 60")) for session in sessions]
        talks = [asyncio.create_task(talk(number)) for number in range(4)]
        os.kill(pool.process.pid, signal.SIGHUP)
        await pool.logged("workers_replaced")
        over.set()
        assert min(await asyncio.gather(*talks)) > 0
        said = await asyncio.gather(*slow)
        assert {stop for _, stop in said} == {"end_turn"}
        assert len({text for text, _ in said}) == 1, "every slow stream is whole"
        assert not before & set(pool.workers)


async def test_a_session_is_served_whichever_worker_is_asked(pool: Pool) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as web, asyncio.timeout(HANG):
        session = await new_session(web, pool)
        for number in range(12):  # each on a new connection: the kernel chooses the worker
            assert await turn(web, pool, session, f"no {number}") == (f"You said: no {number}", "end_turn")
        async with web.get(pool.address.removesuffix("/aap") + "/metrics") as response:
            text = await response.text()
        assert 'worker="0"' in text
        assert 'worker="1"' in text
        assert sum(float(line.rpartition(" ")[2]) for line in text.splitlines()
                   if line.startswith('dragoman_turns_total{outcome="completed"')) == 12


async def test_a_worker_that_is_killed_is_started_again_and_its_sessions_go_on(pool: Pool) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as web, asyncio.timeout(HANG):
        sessions = [await new_session(web, pool) for _ in range(8)]
        for session in sessions:
            await turn(web, pool, session, "before")
        os.kill(pool.workers[0], signal.SIGKILL)
        await pool.logged("worker_restarted")
        for session in sessions:
            assert await until_served(web, pool, session, "after") == ("You said: after", "end_turn")


@pytest.mark.parametrize("transports", [["polling"], ["polling", "websocket"], ["websocket"]])
async def test_clients_of_socket_io_hold_a_conversation_on_connections_that_several_workers_accept(
    pool: Pool, transports: list[str],
) -> None:
    address = pool.address.removesuffix("/aap")

    async def converse(number: int) -> str:
        """Send one message, each request on a TCP connection of its own; the answer."""
        # A connector that closes every connection makes the kernel choose the worker of each request.
        web = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))
        page = socketio.AsyncClient(reconnection=False, http_session=web)
        over, said = asyncio.Event(), dict[str, str]()

        async def hear(event: str, payload: dict[str, Any]) -> None:
            if event == "turn:end" and payload.get("role") == "assistant":
                said["text"] = "".join(block["content"] for block in payload["blocks"] if block["type"] == "text")
            if event == "chat:end":
                over.set()

        page.on("*", hear)
        try:
            async with web.post(f"{address}/api/sessions", json={"intent": "a talk"}) as response:
                session = {"session_id": (await response.json())["session_id"]}
            await page.connect(address, transports=transports)
            await page.call("session:subscribe", session)
            assert (await page.call("chat:send", {**session, "message": f"no {number}"}))["status"] == "ok"
            await over.wait()
            return said["text"]
        finally:
            await page.disconnect()
            await web.close()

    async with asyncio.timeout(HANG):
        answers = await asyncio.gather(*(converse(number) for number in range(8)))
    assert answers == [f"You said: no {number}" for number in range(8)]


async def until_served(web: aiohttp.ClientSession, pool: Pool, session: str, text: str) -> tuple[str, str]:
    """The turn; what is refused with 503 has not happened, and is sent again."""
    while True:
        try:
            return await turn(web, pool, session, text)
        except Refused as refused:
            assert refused.status == 503, refused
            await asyncio.sleep(0.2)


def test_the_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "redis")
    redis.start()
    try:
        with pool_of_two(tmp_path, redis) as pool:
            asyncio.run(pool.logged("workers_ready"))
            workers = pool.workers
            watched = [os.pidfd_open(pid) for pid in workers]
            pool.process.kill()
            pool.process.wait(HANG)
            left = set(watched)
            while left:
                ended, _, _ = select.select(list(left), [], [], HANG)
                assert ended, "a worker outlives its parent"
                left -= set(ended)
    finally:
        redis.stop()
