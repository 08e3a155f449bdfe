"""Settings and tables read again while the server runs: when their files change, or on SIGHUP."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway import journal
from gateway.errors import GatewayError
from gateway.marks import Problems

Reload = Callable[[], Awaitable[None]]
Files = Callable[[], Collection[Path]]
Stamps = dict[Path, tuple[int, ...]]

QUIET = 0.1
"""Seconds of silence before reading again: an editor or a deployment writes several files, and some of them twice."""
LOOK = 1000
"""Milliseconds after which the files are looked at even if nobody announced a change: some file systems never do."""

log = journal.get("dragoman.watch")


async def keep_current(reload: Reload, files: Files | None = None, *, quiet: float = QUIET) -> None:
    """Call `reload` on SIGHUP and, if `files` are given, when one of them changes; until cancelled.

    A reload that fails is told in the journal with all its problems, and what was in force before stays so.
    """
    due = asyncio.Event()
    seen = stamps(files()) if files else {}
    with hangup(due.set):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_reloading(reload, due, quiet))
            if files is not None:
                tasks.create_task(_watching(files, seen, due))


@contextmanager
def hangup(tell: Callable[[], None]) -> Iterator[None]:
    """SIGHUP says that the settings have changed, as long as this lasts; if our terminal is gone it asks us to end."""
    loop, at_a_terminal = asyncio.get_running_loop(), _has_terminal()

    def heard() -> None:
        if at_a_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            tell()

    loop.add_signal_handler(signal.SIGHUP, heard)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _has_terminal() -> bool:
    try:
        return bool(os.tcgetpgrp(0))
    except OSError:
        return False


async def _reloading(reload: Reload, due: asyncio.Event, quiet: float) -> None:
    while True:
        await due.wait()
        while due.is_set():
            due.clear()
            await asyncio.sleep(quiet)
        await attempt(reload)


async def attempt(reload: Reload) -> bool:
    """Reload once; False, and everything as it was, if something is wrong."""
    try:
        await reload()
    except Problems as problems:
        told = [str(problem) for problem in problems.problems]
        log.error("not reloaded; what was in force stays so", problems=told)
    except (GatewayError, OSError) as error:
        log.error("not reloaded; what was in force stays so", problems=[str(error)])
    else:
        log.info("reloaded")
        return True
    return False


async def _watching(files: Files, seen: Stamps, due: asyncio.Event) -> None:
    """Tell of every change. Folders are watched, not files: editors put a new file in the old one's place."""
    from watchfiles import awatch

    while True:
        folders = _folders(files())
        async for _ in awatch(*folders, recursive=False, watch_filter=None, debounce=400, rust_timeout=LOOK,
                              yield_on_timeout=True):
            now = stamps(files())
            if any(file in now and now[file] != stamp for file, stamp in seen.items()):
                due.set()
            seen = now
            if _folders(files()) != folders:
                break


def stamps(files: Collection[Path]) -> Stamps:
    """What tells one state of the files from another."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, ...]:
    try:
        stat = file.stat()
    except OSError:
        return ()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _folders(files: Collection[Path]) -> set[Path]:
    return {file.parent for file in files if file.parent.is_dir()}
