"""tinyproxy, as Debian packages it, between clients and servers: chats of every dialect, and streams piece by piece.

Loopback is never reached through a proxy, so the servers are named 0.0.0.0: for tinyproxy that is this machine, too.
"""

import asyncio
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from gateway.client import HttpClient
from gateway.errors import BackendFailed
from gateway.ports import Timeouts
from tests.support.client.byte_server import END, ReceivedRequest, chunk, head, serving
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.free_ports import free_port
from tests.support.server_process import running

ROOT = Path(__file__).parents[3]
PLACE = "0.0.0.0"
LOGIN = "dragon:s3cret-pass"
AGENT = 'async def reply(text, turn):\n    yield "You said: "\n    yield text\n'
PIECES = 5


@dataclass
class Tinyproxy:
    port: int
    journal: Path

    def environment(self, login: str = LOGIN) -> dict[str, str]:
        url = f"http://{login}@127.0.0.1:{self.port}"
        return {"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": ""}

    def connected(self) -> int:
        """To how many servers it has connected so far, for tunnels and for requests."""
        return self.journal.read_text().count("Established connection to host")


@pytest.fixture(scope="module")
def tinyproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tinyproxy]:
    folder = tmp_path_factory.mktemp("tinyproxy")
    subprocess.run(["apt-get", "download", "tinyproxy-bin"], cwd=folder, check=True, capture_output=True)
    [package] = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, folder / "files"], check=True)
    made = Tinyproxy(free_port(), folder / "journal.txt")
    settings = folder / "tinyproxy.conf"
    settings.write_text(
        f'Port {made.port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 50\nLogFile "{made.journal}"\nLogLevel Connect\n'
        f"BasicAuth {LOGIN.replace(':', ' ')}\n")
    with _process([str(folder / "files/usr/bin/tinyproxy"), "-d", "-c", str(settings)], made.port):
        yield made


@contextmanager
def _process(command: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(command) as process:
        try:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                assert process.poll() is None, f"{command[0]} ended"
                time.sleep(0.1)
            yield
        finally:
            process.kill()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, authority = tmp_path_factory.mktemp("certificates"), trustme.CA()
    server = authority.issue_cert(PLACE)
    authority.cert_pem.write_to_path(folder / "authority.pem")
    server.private_key_pem.write_to_path(folder / "key.pem")
    server.cert_chain_pems[0].write_to_path(folder / "server.pem")
    return folder


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_a_chat_in_a_tunnel(dialect: str, tinyproxy: Tinyproxy, certificates: Path, tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(AGENT)
    files = {"certificate": str(certificates / "server.pem"), "key": str(certificates / "key.pem")}
    before = tinyproxy.connected()
    with running(
        tmp_path, tls=files, hosts=[PLACE], dialects=ALL_DIALECTS,
        agents={"echo": {"backend": "python", "settings": {"agent": "echo:reply"}}},
    ) as server:
        [address] = [line.split()[1] for line in server.greeting if line.split()[:1] == [dialect]]
        command = [sys.executable, "-m", "gateway", "chat", address.replace("127.0.0.1", PLACE), "--dialect", dialect]
        done = subprocess.run(
            command, input="hello\nagain\n", capture_output=True, text=True, timeout=600, cwd=ROOT,
            env={**os.environ, **tinyproxy.environment(), "SSL_CERT_FILE": str(certificates / "authority.pem")})
    assert (done.returncode, done.stdout) == (0, "You said: hello\nYou said: again\n"), done.stderr
    assert tinyproxy.connected() > before


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_piece_arrives_before_the_next_is_sent(
    scheme: str, tinyproxy: Tinyproxy, certificates: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in tinyproxy.environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "authority.pem"))
    context = None
    if scheme == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "key.pem")
    wanted = asyncio.Semaphore(1)

    async def answer(writer: asyncio.StreamWriter, asked: ReceivedRequest) -> None:
        writer.write(head())
        for number in range(PIECES):
            await wanted.acquire()
            writer.write(chunk(f"data: {number}\n\n".encode()))
        writer.write(END)

    before, came = tinyproxy.connected(), list[str]()
    async with serving(answer, tls=context) as server:
        upstream = HttpClient(server.url.replace("127.0.0.1", PLACE), timeouts=Timeouts(attempts=1))
        async with upstream.stream("POST", "/chat", {}) as events:
            while batch := await events.read():
                came += [event.data for event in batch]
                wanted.release()
        await upstream.close()
    assert came == [str(number) for number in range(PIECES)]
    assert tinyproxy.connected() == before + 1


@pytest.mark.parametrize(("scheme", "message"), [
    ("http", r"\(through the proxy NAME\) answered 401"),
    ("https", "the proxy NAME refuses its user name and password"),
])
async def test_a_wrong_password(
    scheme: str, message: str, tinyproxy: Tinyproxy, monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in tinyproxy.environment("dragon:wrong").items():
        monkeypatch.setenv(variable, value)
    upstream = HttpClient(f"{scheme}://{PLACE}:9", timeouts=Timeouts(attempts=1))
    with pytest.raises(BackendFailed, match=message.replace("NAME", f"http://127.0.0.1:{tinyproxy.port}")):
        await upstream.json("GET", "/")
    await upstream.close()
