"""An async function that blocks is named with its file and line, once; whoever else blocks is not blamed on it."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import gateway.model as m
from gateway.backends.python import watchdog
from gateway.backends.python.backend import PythonBackend
from gateway.backends.python.watchdog import LoopWatchdog
from tests.support.backends.function_backends import FunctionTurns, function_backend, loaded, write_module
from tests.support.gateway_server import until

BLOCKS = "agent_blocks_event_loop"


class Turned(threading.Event):
    """What the watchdog waits for; a test can wait until it has waited so often in vain."""

    vain = threading.Semaphore(0)

    def wait(self, timeout: float | None = None) -> bool:
        has_turned = super().wait(timeout)
        if not has_turned:
            self.vain.release()
        return has_turned


@pytest.fixture(autouse=True)
def waits_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turned, "vain", threading.Semaphore(0))
    monkeypatch.setattr(watchdog, "threading", SimpleNamespace(**{**vars(threading), "Event": Turned}))


def block_the_loop() -> None:
    """Until the watchdog has noticed, and could have told of it again and again."""
    for _ in range(5):
        assert Turned.vain.acquire(timeout=60), "it did not look"


async def test_one_that_blocks_the_loop_is_named() -> None:
    async def blocking() -> AsyncIterator[str]:
        yield "a"
        block_the_loop()
        yield "b"

    async with FunctionTurns(function_backend(blocking, blocked_seconds=0.1)) as turn:
        assert (await turn.end()).outcome is m.Outcome.COMPLETED, "it is named, not stopped"
        [line] = turn.of(BLOCKS)
    code = blocking.__code__
    assert (line["agent"], line["function"], line["log_level"]) == ("agent", "test:blocking", "warning")
    assert line["at"].startswith(f"{code.co_filename}:"), "its own file"
    assert line["inside"].startswith(f"{threading.__file__}:"), "where it stands"


async def test_a_task_that_the_agent_started_is_named_after_it() -> None:
    async def child() -> None:
        block_the_loop()

    async def parent() -> str:
        await asyncio.create_task(child())
        return "done"

    async with FunctionTurns(function_backend(parent, blocked_seconds=0.1)) as turn:
        assert (await turn.end()).outcome is m.Outcome.COMPLETED
        [line] = turn.of(BLOCKS)
    assert line["function"] == "test:parent"


async def test_nobody_is_named_while_the_loop_turns() -> None:
    may_go, older = asyncio.Event(), set(threading.enumerate())

    def is_watched() -> bool:
        """By a thread of this test: one of a test before may still be in its last sleep."""
        return any(thread.name == "watchdog of agents" for thread in set(threading.enumerate()) - older)

    async def patient() -> str:
        await may_go.wait()
        return "done"

    async with FunctionTurns(function_backend(patient, blocked_seconds=3600)) as turn:
        await until(is_watched)
        may_go.set()
        assert (await turn.end()).outcome is m.Outcome.COMPLETED
        assert not turn.of(BLOCKS)
    await until(lambda: not is_watched())


class Looking(LoopWatchdog):
    """One that looks when a test lets it, and tells when it has looked."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.may_look, self.looked = threading.Event(), threading.Event()

    def _watch(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        assert self.may_look.wait(300)
        super()._watch(loop, ident)

    def _report(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        super()._report(loop, ident)
        self.looked.set()


async def test_somebody_else_who_blocks_is_not_blamed_on_the_agent(tmp_path: Path) -> None:
    name = write_module(tmp_path, "import asyncio\n\nasync def reply():\n    await asyncio.sleep(3600)\n")
    backend, looking = PythonBackend(loaded(tmp_path, f"{name}:reply")), Looking(0.05)
    backend._watchdog = looking
    async with FunctionTurns(backend) as turn:
        await until(lambda: looking._running)
        looking.may_look.set()  # not before: a machine that is busy may keep the agent's own first step for long
        assert looking.looked.wait(300), "it has looked, while the test itself blocked the loop"
        assert not turn.of(BLOCKS)
        turn.session.submit([m.Interrupt()])
        await turn.end()
