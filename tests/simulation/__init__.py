"""Simulated time: an event loop whose clock and network belong to the test."""

from tests.simulation.loop import NothingLeftToDo, SimulatedLoop, simulated

__all__ = ["NothingLeftToDo", "SimulatedLoop", "simulated"]
