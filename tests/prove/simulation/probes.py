"""What clients of the dialects do not do: repeat requests under an Idempotency-Key, and look at what is not theirs."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from gateway.app import Gateway
from gateway.errors import GatewayError, NotFound
from tests.prove.crash.clients import CrashRun, DialectClient, client_types
from tests.prove.simulation.conversation import GONE, session
from tests.prove.simulation.loop import Process

if TYPE_CHECKING:
    from tests.prove.simulation.world import World

STRANGER = "stranger"
REQUESTS = 4
"""How many sessions are created under a key, and created again."""


class Probes:
    """A client that repeats requests under their keys, and a user to whom no session belongs."""

    def __init__(self, world: "World") -> None:
        self.found: list[str] = []
        self._world = world
        self._process = Process(world.loop, "probes", "10.0.2.240", f"{world.plan.seed} probes")
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to send requests, a few over the day."""
        self._task = self._process.spawn(self._create_all(), "probes")

    async def _create_all(self) -> None:
        kinds = [kind for kind in client_types() if kind.has_keys]
        random, plan = self._process.random, self._world.plan
        async with session(self._process) as http:
            run = CrashRun(self._world.conversation.address, Random(f"{plan.seed} keyed"), http)
            for number in range(REQUESTS if kinds else 0):
                await asyncio.sleep(random.uniform(0, 2 * plan.seconds / REQUESTS))
                http.headers["Idempotency-Key"] = f"key-{number}"
                client = kinds[number % len(kinds)](run, 900 + number)
                first = await self._create(client)
                await asyncio.sleep(random.uniform(0, plan.lease))
                second = await self._create(client)
                if first != second:
                    self.found.append(
                        f"answer forgotten: {client.name} created {first}, and by the same key {second}")

    async def _create(self, client: DialectClient) -> str:
        """The session that the server says it has created; the request is sent until it is answered."""
        while True:
            try:
                return await client.create()
            except GONE:
                await asyncio.sleep(self._process.random.uniform(0.05, 0.5))

    async def end(self, sessions: Sequence[str]) -> list[str]:
        """Wait for the last answers, and let a stranger look at every session on every server."""
        if self._task is not None:
            async with asyncio.timeout(300):
                await self._task
        for server in self._world.servers:
            if server.gateway is not None and server.process is not None:
                await server.process.spawn(self._look(server.gateway, sessions), "stranger")
        return self.found

    async def _look(self, gateway: Gateway, sessions: Sequence[str]) -> None:
        for session_id in sessions:
            try:
                await gateway.sessions.get(STRANGER, session_id)
            except NotFound:
                continue
            except GatewayError as error:
                self.found.append(f"a stranger is told of {session_id}: {error.message}")
            else:
                self.found.append(f"a stranger sees {session_id}")
        views, _ = await gateway.sessions.list(STRANGER)
        self.found += [f"a stranger finds {view.session_id} in a list" for view in views]
