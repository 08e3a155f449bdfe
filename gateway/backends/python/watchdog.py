"""A watchdog that logs which async function blocks the event loop, and at which line."""

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import structlog

from .agent_function import AgentFunction

log = structlog.get_logger("dragoman.python")

Loop = asyncio.AbstractEventLoop


MAX_SLEEP_SECONDS = 1.0
"""Seconds at most between two checks; the thread ends at a check that finds no running function."""


class LoopWatchdog:
    """A thread that, while functions run, asks the event loop now and then for a sign of life."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[asyncio.Task[object], tuple[str, AgentFunction]] = {}
        self._lock, self._is_awake = threading.Lock(), False

    @contextmanager
    def over(self, name: str, agent: AgentFunction) -> Iterator[None]:
        """Watch the current task, which runs the agent of that name."""
        task = asyncio.current_task()
        assert task is not None, "only a task is watched"
        with self._lock:
            self._running[task] = (name, agent)
            starts, self._is_awake = not self._is_awake, True
        if starts:
            about = (asyncio.get_running_loop(), threading.get_ident())
            threading.Thread(target=self._watch, args=about, name="watchdog of agents", daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                del self._running[task]

    # -- in the thread --------------------------------------------------------------------------------------------

    def _watch(self, loop: Loop, ident: int) -> None:
        while self._is_needed(loop):
            turned = threading.Event()
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(turned.set)
            if not turned.wait(self._seconds):
                self._report(loop, ident)
                while not turned.wait(self._seconds) and not loop.is_closed():
                    pass  # it was logged once
            time.sleep(min(self._seconds / 4, MAX_SLEEP_SECONDS))

    def _is_needed(self, loop: Loop) -> bool:
        with self._lock:
            self._is_awake = bool(self._running) and not loop.is_closed()
            return self._is_awake

    def _report(self, loop: Loop, ident: int) -> None:
        """Log the agent, unless something else blocks the loop."""
        frame = sys._current_frames().get(ident)
        task = asyncio.current_task(loop)
        known = self._running.get(task) if task is not None else None
        for name, agent in [known] if known else list(self._running.values()):
            files = {str(file) for file in agent.source.files}
            if (at := frame_location(frame, files)) or known:
                log.warning(
                    "agent_blocks_event_loop", agent=name, function=agent.reference,
                    at=at or frame_location(frame), inside=frame_location(frame), seconds=self._seconds,
                )
                return


def frame_location(frame: FrameType | None, files: set[str] | None = None) -> str | None:
    """`file:line in function` of the frame, or of its first caller in one of these files."""
    while frame is not None and files is not None and frame.f_code.co_filename not in files:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}" if frame else None
