"""How to wait, where tests have to control the time."""

from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]
"""Waits for so many seconds."""
