"""Who drives the client under test: a command that is run for each situation, or a person at a terminal."""

import asyncio
import os
import sys

from conformance.clients.situation import Cue

ENDING = 3.0
"""Seconds that a command has to end once its situation is over."""


STANDARD_ERROR = 2


class CommandDriver:
    """Runs a shell command for each situation; what it prints goes to standard error, and its exit code is ignored."""

    def __init__(self, command: str) -> None:
        self._command = command

    async def __call__(self, cue: Cue) -> None:
        process = await asyncio.create_subprocess_shell(
            self._command, env=os.environ | cue.environment(), stdin=asyncio.subprocess.DEVNULL, stdout=STANDARD_ERROR,
            start_new_session=True,
        )  # fmt: skip
        try:
            await process.wait()
        except asyncio.CancelledError:
            await _end(process)
            raise


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the command and what it has started: politely first."""
    for signal_name in ("SIGTERM", "SIGKILL"):
        if process.returncode is None:
            _signal(process.pid, signal_name)
            try:
                async with asyncio.timeout(ENDING):
                    await process.wait()
            except TimeoutError:
                continue


def _signal(group: int, name: str) -> None:
    import signal

    try:
        os.killpg(group, signal.Signals[name])
    except ProcessLookupError:
        return


class PersonDriver:
    """A person, who may press Enter when nothing more is to be done."""

    async def __call__(self, cue: Cue) -> None:
        loop = asyncio.get_running_loop()
        pressed: asyncio.Future[None] = loop.create_future()
        if not sys.stdin.isatty():
            await pressed
        loop.add_reader(sys.stdin.fileno(), _read_line, pressed)
        try:
            await pressed
        finally:
            loop.remove_reader(sys.stdin.fileno())


def _read_line(pressed: "asyncio.Future[None]") -> None:
    sys.stdin.readline()
    if not pressed.done():
        pressed.set_result(None)
