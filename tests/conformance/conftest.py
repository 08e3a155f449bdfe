"""What the proofs of the examiners share: suites, and servers to put them to."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance.faults.aap.server import AapServer
from conformance.faults.local_server import served
from conformance.kit.suite import Suite, load_suite
from conformance.kit.verdict import Report
from tests.support.conformance.examinations import examine_at, examine_server, record_server

pytest.register_assert_rewrite("tests.support.conformance.wrong_servers")  # its assertions show what they compare
Examine = Callable[..., Awaitable[Report]]
WITHIN = 5.0


@pytest.fixture(scope="session")
def aap() -> Suite:
    return load_suite("aap")


@pytest.fixture(scope="session")
def cas() -> Suite:
    return load_suite("cas")


@pytest.fixture(scope="session")
def zenflux() -> Suite:
    return load_suite("zenflux")


@pytest.fixture(scope="session")
def blade() -> Suite:
    return load_suite("blade")


@pytest.fixture
def examine(aap: Suite) -> Examine:
    """Put the suite, or the named requirements of it, to a server or an address."""

    async def run(server: AapServer | str, *ids: str, within: float = WITHIN, **more: Any) -> Report:
        if not isinstance(server, str):
            return await examine_server("aap", server, *ids, within=within, **more)
        profile = more.pop("profile", None) or aap.read_profile()
        return await examine_at("aap", server, profile, *ids, within=within, **more)

    return run


@pytest.fixture
def examine_cas() -> Examine:
    """Put the CAS suite, or the named requirements of it, to a server whose heart beats fast."""
    return partial(examine_server, "cas", within=WITHIN)


@pytest.fixture
def examine_zenflux() -> Examine:
    """Put the ZenFlux suite, or the named requirements of it, to a server that ticks fast and is not slow for long."""
    return partial(examine_server, "zenflux", within=WITHIN)


@pytest.fixture
def examine_blade() -> Examine:
    """Put the Blade suite, or the named requirements of it, to a server."""
    return partial(examine_server, "blade", within=WITHIN)


@pytest.fixture
def in_background() -> Iterator[Callable[[AapServer], str]]:
    """Serve from another thread, for commands that run a loop of their own."""
    loop, done = asyncio.new_event_loop(), []

    def serve(server: AapServer) -> str:
        ready, leaving, found = threading.Event(), asyncio.Event(), []

        async def main() -> None:
            async with served(server) as url:
                found.append(url)
                ready.set()
                await leaving.wait()

        thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
        done.append((thread, leaving))
        thread.start()
        assert ready.wait(300)
        return found[0]

    yield serve
    for thread, leaving in done:
        loop.call_soon_threadsafe(leaving.set)
        thread.join(300)
    loop.close()


@pytest.fixture
def record_run(tmp_path: Path) -> Callable[..., Awaitable[tuple[Path, Report]]]:
    """Put the suite of a dialect to a server through the recording proxy: the file, and what the suite found."""

    async def run(dialect: str, server: Any, *ids: str, **more: Any) -> tuple[Path, Report]:
        path = tmp_path / f"{dialect}.jsonl"
        return path, await record_server(dialect, server, path, *ids, **{"within": WITHIN, **more})

    return run
