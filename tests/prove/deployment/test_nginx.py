"""nginx runs deploy/nginx.conf over TLS before three servers on one Redis; clients of every dialect talk through it."""

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import HTTPErrorProcessor, Request, build_opener, urlopen

import pytest
import trustme

from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.free_ports import free_port
from tests.support.redis_server import RedisServer
from tests.support.server_process import Running, running

ROOT = Path(__file__).parents[3]
NAME = "localhost"
CUT_SECONDS, SILENT_SECONDS = 3, 8
"""nginx cuts what is silent for CUT_SECONDS; the agent says nothing for SILENT_SECONDS."""
AGENT = f"""
import asyncio

async def reply(text, turn):
    if text == "wait":
        await asyncio.sleep({SILENT_SECONDS})
    yield f"You said: {{text}}"
"""
OFTEN = {"zenflux": {"tick_seconds": 1}, "blade": {"ping_seconds": 1}}
"""Sockets that have heartbeats of their own get them every second."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Running]]:
    redis = RedisServer(tmp_path_factory.mktemp("redis"))
    redis.start()
    with ExitStack() as stack:
        stack.callback(redis.stop, kill=True)
        started = []
        for number in range(3):
            folder = tmp_path_factory.mktemp(f"server{number}")
            (folder / "waiting.py").write_text(AGENT)
            started.append(stack.enter_context(running(
                folder, log=redis.url, trusted_proxies=["127.0.0.1"],
                dialects={**ALL_DIALECTS, **OFTEN},
                limits={"heartbeat_seconds": 1},
                agents={"waiting": {"backend": "python", "settings": {"agent": "waiting:reply"}}},
            )))
        yield started


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def proxy(
    servers: list[Running], authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, str]]:
    """nginx with our settings; its https and http addresses."""
    folder, ports = tmp_path_factory.mktemp("nginx"), (free_port(), free_port())
    certificate = authority.issue_cert(NAME)
    (folder / "server.crt").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(folder / "server.key")
    (folder / "nginx.conf").write_text(our_settings(servers, folder, *ports))
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert nginx is not None, "nginx is needed"
    process = subprocess.Popen(
        [nginx, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "errors", "-g", "daemon off;"])
    try:
        wait_for(ports[0], process, folder / "errors")
        yield f"https://{NAME}:{ports[0]}", f"http://{NAME}:{ports[1]}"
    finally:
        process.terminate()
        process.wait(60)


def our_settings(servers: list[Running], folder: Path, https: int, http: int) -> str:
    """deploy/nginx.conf with the addresses, files and times of this test; nothing else is changed."""
    text = (ROOT / "deploy/nginx.conf").read_text()
    changes = {
        r"gateway-1:18900": servers[0].address.partition("//")[2],
        r"gateway-2:18900": servers[1].address.partition("//")[2],
        r"gateway-3:18900": servers[2].address.partition("//")[2],
        r"/etc/nginx/tls/": f"{folder}/", r"/run/nginx\.pid": f"{folder}/pid",
        r"listen 443 ssl": f"listen 127.0.0.1:{https} ssl", r"listen 80": f"listen 127.0.0.1:{http}",
        r"proxy_read_timeout 120s": f"proxy_read_timeout {CUT_SECONDS}s",
        r"worker_connections 20000": "worker_connections 500",
    }
    for old, new in changes.items():
        text, count = re.subn(old, new, text)
        assert count, f"deploy/nginx.conf has no {old}"
    places = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return text.replace("http {", "http {\n" + "".join(f"{one}_temp_path {folder}/{one};\n" for one in places), 1)


def wait_for(port: int, process: "subprocess.Popen[bytes]", errors: Path) -> None:
    while process.poll() is None:
        with socket.socket() as line:
            if line.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(errors.read_text())


@pytest.fixture
def trust(authority: trustme.CA, tmp_path: Path) -> Path:
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    return tmp_path / "authority.pem"


@pytest.mark.parametrize("dialect", ALL_DIALECTS)
def test_a_stream_passes_and_stays_while_it_is_silent(
    dialect: str, servers: list[Running], proxy: tuple[str, str], trust: Path,
) -> None:
    [address] = [line.split()[1] for line in servers[0].greeting if line.split()[:1] == [dialect]]
    url = address.replace(servers[0].address, proxy[0])
    command = [sys.executable, "-m", "gateway", "chat", url, "--dialect", dialect]
    began = time.monotonic()
    done = subprocess.run(command, input="hello\nwait\n", capture_output=True, text=True, timeout=600, cwd=ROOT,
                          env={**os.environ, "SSL_CERT_FILE": str(trust)})
    assert (done.returncode, done.stdout) == (0, "You said: hello\nYou said: wait\n"), done.stderr
    assert time.monotonic() - began >= SILENT_SECONDS > 2 * CUT_SECONDS


def test_events_leave_as_they_come_on_one_connection(proxy: tuple[str, str], trust: Path) -> None:
    """What a stream says before the agent is silent arrives before the agent goes on, and the stream is never cut."""
    context = ssl.create_default_context(cafile=str(trust))
    with urlopen(f"{proxy[0]}/aap/sessions", b'{"agent": {"name": "waiting"}}', context=context) as answer:
        session = re.search(rb"sess_\w+", answer.read())
    assert session
    body = b'{"stream": "delta", "messages": [{"role": "user", "content": "wait"}]}'
    arrived: dict[str, float] = {}
    with urlopen(f"{proxy[0]}/aap/sessions/{session[0].decode()}/turns", body, context=context) as stream:
        for line in stream:
            arrived.setdefault(line.decode().strip(), time.monotonic())
    assert arrived["event: turn_stop"] - arrived["event: turn_start"] > SILENT_SECONDS - 1


def test_plain_http_is_sent_to_https(proxy: tuple[str, str]) -> None:
    class Stay(HTTPErrorProcessor):
        def http_response(self, request: object, response: object) -> object:  # type: ignore[override]
            return response

    with build_opener(Stay).open(f"{proxy[1]}/aap/meta") as answer:
        assert (answer.status, answer.headers["Location"]) == (308, f"https://{NAME}/aap/meta")


def test_a_page_of_the_public_address_may_use_the_servers(proxy: tuple[str, str], trust: Path) -> None:
    """The servers believe what nginx says about scheme and name; otherwise this origin would be another's."""
    context = ssl.create_default_context(cafile=str(trust))
    page = Request(f"{proxy[0]}/aap/meta", headers={"Origin": proxy[0]})
    with urlopen(page, context=context) as answer:
        assert answer.status == 200
