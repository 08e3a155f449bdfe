"""What the proofs of the examiners share: the AAP suite, and servers to put it to."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from conformance.faults.reference import ReferenceServer
from conformance.faults.serving import served
from conformance.kit.runner import Runner
from conformance.kit.suite import Suite, Target, load_suite
from conformance.kit.verdict import Report

KEY = "the-key-of-the-examiners"
Examine = Callable[..., Awaitable[Report]]


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
            return await Runner(aap, Target(server, KEY, within), settings, at_once).run(wanted)  # type: ignore[arg-type]
        async with served(server) as url:
            return await Runner(aap, Target(url, KEY, within), settings, at_once).run(wanted)  # type: ignore[arg-type]

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
        assert ready.wait(5)
        return found[0]

    yield serve
    for thread, leaving in done:
        loop.call_soon_threadsafe(leaving.set)
        thread.join(5)
    loop.close()
