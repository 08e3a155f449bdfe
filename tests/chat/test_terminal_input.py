"""Ctrl-C is counted whenever it comes, and raised only where somebody waits, reads or asks."""

import _thread
import os
import signal
import threading
from concurrent.futures import Future

import pytest

from gateway.chat.terminal_input import InterruptPressed, InterruptWatcher
from gateway.errors import TimedOut


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_who_waits_hears_it_at_once() -> None:
    with InterruptWatcher() as bell:
        presser = threading.Timer(0, press)
        presser.start()
        with pytest.raises(InterruptPressed):
            bell.wait(Future(), 60)
        presser.join()


def test_who_reads_hears_it_at_once() -> None:
    read, write = os.pipe()
    with InterruptWatcher() as bell, os.fdopen(read) as lines, os.fdopen(write, "w"):
        presser = threading.Timer(0, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
        presser.start()
        with pytest.raises(InterruptPressed):
            bell.read_interruptibly(lines.readline)
        presser.join()


def test_one_that_comes_just_before_a_read_blocks_is_heard_in_the_read() -> None:
    """`interrupt_main` is such a signal: it has the handler called when anything ends the wait, and ends no wait."""
    read, write = os.pipe()
    with InterruptWatcher() as bell, os.fdopen(read) as lines, os.fdopen(write, "w"):
        presser = threading.Timer(0.05, _thread.interrupt_main)
        presser.start()
        with pytest.raises(InterruptPressed):
            bell.read_interruptibly(lines.readline)
        presser.join()
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("how", ["wait", "read", "check"])
def test_who_is_busy_hears_it_when_they_wait_again(how: str) -> None:
    done: Future[str] = Future()
    done.set_result("done")
    with InterruptWatcher() as bell:
        listen = {
            "wait": lambda: bell.wait(done),
            "read": lambda: bell.read_interruptibly(lambda: "done"),
            "check": bell.check,
        }
        press()
        press()
        for _ in range(2):  # pressed twice, told twice
            with pytest.raises(InterruptPressed):
                listen[how]()
        assert listen[how]() in ("done", None)


def test_a_result_ends_the_wait_and_so_does_the_time() -> None:
    late: Future[str] = Future()
    with InterruptWatcher() as bell:
        with pytest.raises(TimedOut):
            bell.wait(late, 0.01)
        setter = threading.Timer(0, late.set_result, ["at last"])
        setter.start()
        assert bell.wait(late, 300) == "at last"
        setter.join()
        failed: Future[str] = Future()
        failed.set_exception(ValueError("broken"))
        with pytest.raises(ValueError, match="broken"):
            bell.wait(failed)


def test_afterwards_everything_is_as_before() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGALRM)}
    with InterruptWatcher():
        assert all(signal.getsignal(number) is not handler for number, handler in before.items())
    assert {number: signal.getsignal(number) for number in before} == before


def test_after_the_last_bell_of_a_process_nothing_is_heard() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with InterruptWatcher(is_last=True):
            pass
        press()
    finally:
        signal.signal(signal.SIGINT, before)
