"""Each proxy runs our file over TLS before three servers on one Redis; clients of every dialect talk through it."""

import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from urllib.request import HTTPErrorProcessor, build_opener, urlopen

import pytest
import trustme

from tests.prove.deployment.proxies import CUT_SECONDS, NAME, PROXIES, PUBLIC_NAME, ROOT, SILENT_SECONDS, Site
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.free_ports import free_port
from tests.support.server_process import Running


@dataclass(frozen=True)
class Proxy:
    https: str
    http: str


@pytest.fixture(scope="module", params=PROXIES)
def proxy(
    servers: list[Running], authority: trustme.CA, trust: Path, tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Proxy]:
    folder, https, http = tmp_path_factory.mktemp(request.param), free_port(), free_port()
    certificate = authority.issue_cert(NAME, PUBLIC_NAME)
    (folder / "server.crt").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(folder / "server.key")
    site = Site([server.address.partition("//")[2] for server in servers], folder, https, http)
    command = PROXIES[request.param](site, lambda: request.getfixturevalue("published"))
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(f"https://{NAME}:{https}", trust, process, folder / "output")
        yield Proxy(f"https://{NAME}:{https}", f"http://{NAME}:{http}")
    finally:
        process.terminate()
        process.wait(60)


def wait_for(url: str, trust: Path, process: "subprocess.Popen[bytes]", output: Path) -> None:
    """Traefik listens before it has read its certificate and its servers."""
    context = ssl.create_default_context(cafile=str(trust))
    while process.poll() is None:
        with suppress(OSError), urlopen(f"{url}/healthz", context=context, timeout=10):
            return
        time.sleep(0.1)
    raise AssertionError(output.read_text())


def test_streams_of_every_dialect_pass_and_stay_while_they_are_silent(
    servers: list[Running], proxy: Proxy, trust: Path,
) -> None:
    """All clients talk at the same time."""
    words = [line.split() for line in servers[0].greeting]
    addresses = {word[0]: word[1] for word in words if word and word[0] in ALL_DIALECTS}
    assert addresses.keys() == ALL_DIALECTS.keys()
    began, pipe = time.monotonic(), subprocess.PIPE
    clients = {
        dialect: subprocess.Popen(
            [sys.executable, "-m", "gateway", "chat", address.replace(servers[0].address, proxy.https),
             "--dialect", dialect],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env={**os.environ, "SSL_CERT_FILE": str(trust)})
        for dialect, address in addresses.items()
    }
    for client in clients.values():
        assert client.stdin
        client.stdin.write("hello\nwait\n")
        client.stdin.flush()
    for dialect, client in clients.items():
        told, errors = client.communicate(timeout=600)
        assert (client.returncode, told) == (0, "You said: hello\nYou said: wait\n"), f"{dialect}: {errors}"
    assert time.monotonic() - began >= SILENT_SECONDS > 2 * CUT_SECONDS


def test_events_leave_as_they_come_on_one_connection(proxy: Proxy, trust: Path) -> None:
    """What a stream says before the agent is silent arrives before the agent goes on, and the stream is never cut."""
    context = ssl.create_default_context(cafile=str(trust))
    with urlopen(f"{proxy.https}/aap/sessions", b'{"agent": {"name": "waiting"}}', context=context) as answer:
        session = re.search(rb"sess_\w+", answer.read())
    assert session
    body = b'{"stream": "delta", "messages": [{"role": "user", "content": "wait"}]}'
    arrived: dict[str, float] = {}
    with urlopen(f"{proxy.https}/aap/sessions/{session[0].decode()}/turns", body, context=context) as stream:
        for line in stream:
            arrived.setdefault(line.decode().strip(), time.monotonic())
    assert arrived["event: turn_stop"] - arrived["event: turn_start"] > SILENT_SECONDS - 1


def test_plain_http_is_sent_to_https(proxy: Proxy) -> None:
    class Stay(HTTPErrorProcessor):
        def http_response(self, request: object, response: object) -> object:  # type: ignore[override]
            return response

    with build_opener(Stay).open(f"{proxy.http}/aap/meta") as answer:
        assert answer.status in (301, 308)
        assert re.fullmatch(rf"https://{NAME}(:\d+)?/aap/meta", answer.headers["Location"])


@pytest.mark.parametrize(("origin", "status"), [(f"https://{PUBLIC_NAME}", 200), ("https://other.example.com", 403)])
def test_pages_of_the_public_address_alone_may_use_the_servers(
    proxy: Proxy, trust: Path, origin: str, status: int,
) -> None:
    """The servers see the name that the client has used; otherwise every origin would be another's."""
    line = HTTPSConnection(proxy.https.partition("//")[2], context=ssl.create_default_context(cafile=str(trust)))
    line.request("GET", "/aap/meta", headers={"Host": PUBLIC_NAME, "Origin": origin})
    assert line.getresponse().status == status
    line.close()
