"""Where clients run: each is a program on a machine of its own, in a simulated world or in the real one."""

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any, Protocol

from tests.prove.simulation.loop import Process, WorldLoop
from tests.prove.simulation.servers import token_of


class ClientProcess(Protocol):
    """A program that is a client of the gateways."""

    name: str
    host: str
    random: Random

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run this in the program."""


class Machines(Protocol):
    """The machines of one world."""

    def process(self, name: str, number: int, tenant: str) -> ClientProcess:
        """A new program, whose HTTP clients send the key of this tenant."""

    def cut_off(self) -> set[str]:
        """The names of the programs that have a dead connection, and may not have noticed."""


class SimulatedMachines:
    """Machines on the network of a simulated world."""

    def __init__(self, loop: WorldLoop, seed: str) -> None:
        self._loop = loop
        self._seed = seed

    def process(self, name: str, number: int, tenant: str) -> Process:
        process = Process(self._loop, name, f"10.0.2.{number + 1}", f"{self._seed} {name}")
        process.token = token_of(tenant)
        return process

    def cut_off(self) -> set[str]:
        return {link.processes[0].name for link in self._loop.network.links.values() if link.is_severed}
