"""The wheel of the examiners is built, put into an empty environment and put to a server. It needs a network."""

import asyncio
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served

ROOT = Path(__file__).parents[3]
OF_THE_SERVER = ("dragoman", "uvloop", "cryptography", "structlog", "prometheus-client", "redis")


@pytest.fixture
def url() -> Iterator[str]:
    """A correct server in a thread of its own."""
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []
    leaving = asyncio.Event()

    async def serve() -> None:
        async with served(AapServer()) as address:
            found.append(address)
            ready.set()
            await leaving.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    yield found[0]
    loop.call_soon_threadsafe(leaving.set)
    thread.join(60)


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_suite_examines_a_server_without_the_gateway(url: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "conformance", tmp_path / "conformance", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path / "wheels", "./conformance", cwd=tmp_path)
    venv.create(tmp_path / "alone", with_pip=True)
    programs = tmp_path / "alone" / "bin"
    (wheel,) = (tmp_path / "wheels").glob("dragoman_conformance-*.whl")
    run(programs / "pip", "install", wheel, cwd=tmp_path)
    listed = run(programs / "pip", "list", "--format=freeze", cwd=tmp_path).lower()
    names = {line.partition("==")[0] for line in listed.splitlines()}
    assert names.isdisjoint(OF_THE_SERVER)
    asked = ("aap", url, "--only", "AAP-META-*", "--report", "report.html")
    told = run(programs / "dragoman-conform", *asked, cwd=tmp_path)
    assert "conforms: Agent Application Protocol" in told
    assert (tmp_path / "report.html").stat().st_size > 10_000
