"""Ctrl-C is heard where somebody waits, and remembered where nobody does."""

import os
import signal

import pytest

from gateway.chat.bell import Bell, Rung


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_who_waits_hears_it_at_once() -> None:
    with Bell() as bell, pytest.raises(Rung), bell.listening():
        press()
        pytest.fail("it was rung while somebody waited")


def test_who_is_busy_hears_it_when_they_wait_again() -> None:
    with Bell() as bell:
        press()
        with pytest.raises(Rung), bell.listening():
            pytest.fail("it was rung before")
        with bell.listening():
            pass  # once is once


def test_afterwards_everything_is_as_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Bell():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
