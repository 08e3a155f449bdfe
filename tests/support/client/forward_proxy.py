"""A proxy as companies have them: CONNECT and whole addresses, with or without a password.

Every name leads to loopback, so a test can name servers that do not exist: `http://api.test:PORT`.
"""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.client.counting_server import Talk


class ForwardProxy:
    """What a test knows of its proxy: its address, and the requests that it got."""

    def __init__(self, login: str = "", refuses: int = 0) -> None:
        self.login, self.refuses = login, refuses
        self.port = 0
        self.asked: list[str] = []
        """The first lines of the requests."""
        self.heads: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://{f'{self.login}@' if self.login else ''}127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        head = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        self.asked.append(first)
        self.heads.append(head)
        method, target, _ = first.split()
        status = self.refuses or (0 if self._is_known(head) else 407)
        if status:
            writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            return
        port = urlsplit(f"//{target}" if method == "CONNECT" else target).port or 80
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\nX-Proxy: test\r\n\r\n")
        else:
            parts = urlsplit(target)
            own = [line for line in lines if not line.lower().startswith("proxy-")]
            place = parts._replace(scheme="", netloc="").geturl() or "/"
            to_server.write("\r\n".join([f"{method} {place} HTTP/1.1", *own, "", ""]).encode())
        await asyncio.gather(_pass_on(reader, to_server), _pass_on(from_server, writer))

    def _is_known(self, head: dict[str, str]) -> bool:
        given = head.get("proxy-authorization", "").removeprefix("Basic ")
        return not self.login or b64decode(given).decode() == self.login


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while piece := await source.read(1 << 16):
                sink.write(piece)
                await sink.drain()
    finally:
        sink.close()


async def listen(serve: Talk) -> asyncio.Server:
    """A server with real sockets, even in a simulated loop: a tunnel is opened on a socket."""
    loop = asyncio.get_running_loop()
    create: Any = getattr(loop, "create_real_server", loop.create_server)
    served: asyncio.Server = await create(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(), serve), "127.0.0.1", 0)
    return served


@asynccontextmanager
async def forward_proxy(
    monkeypatch: pytest.MonkeyPatch, login: str = "", refuses: int = 0,
) -> AsyncIterator[ForwardProxy]:
    """A proxy that the environment names for everything."""
    proxy, tasks = ForwardProxy(login, refuses), set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await proxy.serve(reader, writer)
        writer.close()

    listening = await listen(serve)
    proxy.port = listening.sockets[0].getsockname()[1]
    for variable in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, proxy.url)
    try:
        yield proxy
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
