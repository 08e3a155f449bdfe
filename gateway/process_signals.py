"""The signals of a server process: SIGINT and SIGTERM stop it, SIGHUP makes it reload."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def stop_events() -> tuple[asyncio.Event, asyncio.Event]:
    """The first SIGINT or SIGTERM sets the first event: stop. The second one sets the second: stop without waiting."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def receive() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, receive)
    return stop, hurry


@contextmanager
def on_sighup(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` on SIGHUP; a SIGHUP because the terminal was closed ends the server instead."""
    loop, at_a_terminal = asyncio.get_running_loop(), _has_terminal()

    def receive() -> None:
        if at_a_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            tell()

    loop.add_signal_handler(signal.SIGHUP, receive)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _has_terminal() -> bool:
    try:
        return bool(os.tcgetpgrp(0))
    except OSError:
        return False
