"""Who takes nothing is cut after a while; nothing queues for them, and nobody else notices."""

import asyncio
from pathlib import Path
from typing import Any

from bench.client import dechunk
from tests.support.gateway_server import Served, serving

CAS = "/api/v1/cloud/sessions"
DELTAS = "events/stream?event_deltas[]=agent.message"
WORDS = 4000
SEND_SECONDS = 8
LITTLE = 256 * 1024
"""Bytes that may wait for a client in the server's own memory: a small part of what the others hear."""


class Watcher(asyncio.Protocol):
    """One connection that reads for as long as it is allowed to."""

    def __init__(self) -> None:
        self.heard = bytearray()
        self.gone = asyncio.Event()

    @property
    def body(self) -> bytes:
        """All whole chunks that were heard."""
        return dechunk(self.heard.partition(b"\r\n\r\n")[2] + b"0\r\n\r\n")

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()


async def watching(served: Served, path: str) -> Watcher:
    _, watcher = await asyncio.get_running_loop().create_connection(Watcher, "127.0.0.1", served.port)
    watcher.transport.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return watcher


def kept_for(served: Served) -> int:
    """The bytes that the server keeps for the client for whom it keeps the most."""
    assert served.runner is not None and served.runner.server is not None
    connections = [one.transport for one in served.runner.server.connections if one.transport is not None]
    return max(transport.get_write_buffer_size() for transport in connections)


async def test_who_takes_nothing_is_cut_and_the_others_hear_everything(tmp_path: Path) -> None:
    limits = {"send_seconds": SEND_SECONDS, "heartbeat_seconds": 60}
    async with serving(tmp_path, limits=limits) as served:
        async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as answer:
            session = (await answer.json())["sessionId"]
        path = f"{CAS}/{session}/{DELTAS}"
        hung, *others = [await watching(served, path) for _ in range(4)]
        await asyncio.sleep(1)
        assert hung.heard.startswith(b"HTTP/1.1 200")
        hung.transport.pause_reading()
        had = len(hung.heard)

        said = {"events": [{"type": "user.message", "content": f"/burst {WORDS}"}]}
        async with served.http.post(served.url(f"{CAS}/{session}/events"), json=said) as answer:
            assert answer.status < 300
        await asyncio.sleep(SEND_SECONDS / 2)
        assert all(b"session.status_idle" in other.heard for other in others), "nobody waits for it"
        assert not hung.gone.is_set()
        assert len(others[0].heard) > 2 * LITTLE, "the bound would notice"
        assert kept_for(served) < LITTLE
        assert len(hung.heard) == had

        await asyncio.sleep(SEND_SECONDS)
        assert served.gateway.metrics.registry.get_sample_value("dragoman_cut_subscribers_total") == 1
        assert kept_for(served) == 0
        hung.transport.resume_reading()
        await hung.gone.wait()
        assert len(hung.heard) < 2 * LITTLE, "only what was on its way"
        assert len({other.body for other in others}) == 1 and others[0].body.count(b"word ") >= WORDS
        assert not any(other.gone.is_set() for other in others)
        for watcher in others:
            watcher.transport.abort()
