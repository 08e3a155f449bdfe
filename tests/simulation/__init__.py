"""Simulated time: an event loop whose clock and network belong to the test."""

from tests.simulation.loop import LoopDeadlock, SimulatedLoop, simulated

__all__ = [
    "LoopDeadlock",
    "SimulatedLoop",
    "simulated",
]
