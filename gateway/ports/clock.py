"""What time is, wherever it must not be asked of the machine."""

from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds since the epoch."""
