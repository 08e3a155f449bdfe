"""What the proofs of the examiners share: the AAP suite, and servers to put it to."""

import asyncio
import fcntl
import pickle
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop
from yarl import URL

from conformance.faults.blade.reference import BladeServer
from conformance.faults.cas import CasServer
from conformance.faults.reference import ReferenceServer
from conformance.faults.serving import served
from conformance.faults.zenflux.server import ZenfluxServer
from conformance.kit.runner import Runner
from conformance.kit.suite import Suite, Target, load_suite
from conformance.kit.verdict import Report
from conformance.recording.relay import relaying
from conformance.recording.secrets import Redactor
from conformance.recording.writing import Recorder

KEY = "the-key-of-the-examiners"
Examine = Callable[..., Awaitable[Report]]


TALKATIVE = (
    "test_alarms", "test_blade_reference", "test_cas_reference", "test_faults_reference", "test_kill_sample",
    "test_leaving", "test_offline_har", "test_offline_judging", "test_zenflux_reference",
)  # fmt: skip
"""Files that put whole suites to sound servers, again and again."""


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop that also serves in earnest needs a quarter less for all that talk; the others have the usual one."""
    if item.path.stem in TALKATIVE:
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def aap() -> Suite:
    return load_suite("aap")


@pytest.fixture
def examine(aap: Suite) -> Examine:
    """Put the suite, or the named requirements of it, to a server or an address."""

    async def run(
        server: ReferenceServer | str, *ids: str, within: float = 5.0, profile: object = None, at_once: int = 4
    ) -> Report:
        wanted = [item for item in aap.catalogue.requirements if not ids or item.id in ids]
        settings = profile or aap.read_profile()
        if isinstance(server, str):
            return await Runner(aap, Target(server, KEY, within, True), settings, at_once).run(wanted)  # type: ignore[arg-type]
        async with served(server) as url:
            return await Runner(aap, Target(url, KEY, within, True), settings, at_once).run(wanted)  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def cas() -> Suite:
    return load_suite("cas")


@pytest.fixture
def examine_cas(cas: Suite) -> Examine:
    """Put the CAS suite, or the named requirements of it, to a server whose heart beats fast."""

    async def run(server: CasServer, *ids: str, within: float = 5.0, profile: object = None) -> Report:
        wanted = [item for item in cas.catalogue.requirements if not ids or item.id in ids]
        settings = profile or cas.read_profile().model_copy(update={"heartbeat": server.heartbeat})
        async with served(server) as url:
            return await Runner(cas, Target(url, KEY, within, True), settings).run(wanted)  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def zenflux() -> Suite:
    return load_suite("zenflux")


@pytest.fixture
def examine_zenflux(zenflux: Suite) -> Examine:
    """Put the ZenFlux suite, or the named requirements of it, to a server that ticks fast and is not slow for long."""

    async def run(
        server: ZenfluxServer, *ids: str, within: float = 5.0, profile: object = None, at_once: int = 16
    ) -> Report:
        wanted = [item for item in zenflux.catalogue.requirements if not ids or item.id in ids]
        if server.tick_every == ZenfluxServer.tick_every:
            server.tick_every = 0.8
        usual = zenflux.read_profile()
        prompts = usual.prompts.model_copy(update={"slow": "/slow 12"})  # type: ignore[attr-defined]
        settings = profile or usual.model_copy(update={"heartbeat": 0.9, "prompts": prompts})
        async with served(server) as url:
            return await Runner(zenflux, Target(url, KEY, within, True), settings, at_once).run(wanted)  # type: ignore[arg-type]

    return run


@pytest.fixture(scope="session")
def blade() -> Suite:
    return load_suite("blade")


@pytest.fixture
def examine_blade(blade: Suite) -> Examine:
    """Put the Blade suite, or the named requirements of it, to a server."""

    async def run(
        server: BladeServer, *ids: str, within: float = 5.0, profile: object = None, at_once: int = 4
    ) -> Report:
        wanted = [item for item in blade.catalogue.requirements if not ids or item.id in ids]
        settings = profile or blade.read_profile()
        async with served(server) as url:
            return await Runner(blade, Target(url, KEY, within, True), settings, at_once).run(wanted)  # type: ignore[arg-type]

    return run


@pytest.fixture
def in_background() -> Iterator[Callable[[ReferenceServer], str]]:
    """Serve from another thread, for commands that run a loop of their own."""
    loop, done = asyncio.new_event_loop(), []

    def serve(server: ReferenceServer) -> str:
        ready, leaving, found = threading.Event(), asyncio.Event(), []

        async def main() -> None:
            async with served(server) as url:
                found.append(url)
                ready.set()
                await leaving.wait()

        thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
        done.append((thread, leaving))
        thread.start()
        assert ready.wait(30)
        return found[0]

    yield serve
    for thread, leaving in done:
        loop.call_soon_threadsafe(leaving.set)
        thread.join(30)
    loop.close()


@pytest.fixture
def record_run(tmp_path: Path) -> Callable[..., Awaitable[tuple[Path, Report]]]:
    """Put the suite of a dialect to a server through the recording proxy: the file, and what the suite found."""

    async def run(dialect: str, server: Any, *ids: str, within: float = 5.0) -> tuple[Path, Report]:
        suite, path = load_suite(dialect), tmp_path / f"{dialect}.jsonl"
        wanted = [item for item in suite.catalogue.requirements if not ids or item.id in ids]
        changes = {"heartbeat": getattr(server, "heartbeat", 0.9)} if dialect in ("cas", "zenflux") else {}
        settings = suite.read_profile().model_copy(update=changes)
        if dialect == "zenflux":
            server.tick_every = 0.8 if server.tick_every == ZenfluxServer.tick_every else server.tick_every
            prompts = settings.prompts.model_copy(update={"slow": "/slow 12"})  # type: ignore[attr-defined]
            settings = settings.model_copy(update={"prompts": prompts})
        with path.open("wb") as file:
            async with served(server) as url:
                recorder = Recorder(file, dialect, URL(url), Redactor())
                async with relaying(URL(url), recorder, "127.0.0.1", 0) as address:
                    target = Target(str(address), KEY, within, True)
                    report = await Runner(suite, target, settings, 16 if dialect == "zenflux" else 4).run(wanted)
            recorder.stopped()
        return path, report

    return run


@pytest.fixture
def recorded(
    record_run: Callable[..., Awaitable[tuple[Path, Report]]],
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> Callable[[str, Callable[[], Any]], Awaitable[tuple[Path, Report]]]:
    """A whole examination of a right server, recorded by the first who asks for it: all workers of a run share it."""
    home = tmp_path_factory.getbasetemp()
    home = home if worker_id == "master" else home.parent

    async def run(dialect: str, server: Callable[[], Any]) -> tuple[Path, Report]:
        path, found = home / f"right-{dialect}.jsonl", home / f"right-{dialect}.report"
        with (home / f"right-{dialect}.lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not found.exists():
                made, report = await record_run(dialect, server(), within=30.0)
                made.replace(path)
                found.write_bytes(pickle.dumps(report))
        return path, pickle.loads(found.read_bytes())

    return run
