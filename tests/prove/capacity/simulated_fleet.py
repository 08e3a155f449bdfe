"""Fleets of up to fifty real gateways on a simulated Redis: what they do must not grow with their square."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import Any

import aiohttp

from gateway.capacity import FleetCount
from gateway.storage.redis.scripts import scripts
from tests.prove.simulation.conversation import http_client
from tests.prove.simulation.determinism import wall_clock
from tests.prove.simulation.plan import Plan
from tests.prove.simulation.redis_replies import Reply
from tests.prove.simulation.redis_server import RedisProtocol, SimulatedRedis
from tests.prove.simulation.servers import PORT, TENANTS, RedisHost
from tests.prove.simulation.world import World, run_world, simulation

SIZES = (3, 10, 25, 50)
MOST_EXPONENT = 1.1
"""With exponent 1 each replica causes as much in a large fleet as in a small one; with 2 it is the square."""
LARGE = 10
"""From so many replicas on the growth is fitted: in a small fleet a few others are all others."""
SESSIONS, DELTAS = 2, 20
"""For each replica: sessions, and deltas of each turn."""
WORK_SECONDS, IDLE_SECONDS = 20.0, 60.0
LEASE = 10.0
NAMES = ("commands", "steps of scripts", "keys and members read", "announcements", "deliveries", "subscriptions",
         "renewals of leases")


class CountingRedis(SimulatedRedis):
    """Counts what is asked of it, and what it tells others."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.counts: Counter[str] = Counter()
        self._beat = scripts()["beat"][0].encode()

    def answer(self, words: Sequence[bytes], asker: RedisProtocol) -> list[Reply]:
        self.counts["commands"] += 1
        name = words[0].upper()
        self.counts["subscriptions"] += (len(words) - 1) * name.endswith(b"SUBSCRIBE")
        self.counts["renewals of leases"] += name == b"EVALSHA" and words[1] == self._beat
        return super().answer(words, asker)

    def _carry_out(self, words: Sequence[bytes]) -> Reply:
        reply = super()._carry_out(words)
        self.counts["steps of scripts"] += 1  # with the commands that are no scripts
        self.counts["keys and members read"] += len(reply) if isinstance(reply, list) else 1
        return reply

    def _publish(self, args: Sequence[bytes]) -> Reply:
        receivers = super()._publish(args)
        assert isinstance(receivers, int)
        self.counts["announcements"] += 1
        self.counts["deliveries"] += receivers
        return receivers


class FleetWorld(World):
    """A world without faults, in which every replica has the same work; its Redis is counted."""

    phases: dict[str, Counter[str]]

    def _make_redis(self, seed: str) -> RedisHost:
        self.counting = CountingRedis(wall_clock)
        return RedisHost(self.loop, self.network, self.counting, seed, self.trace)

    async def _main(self) -> None:
        assert self.redis is not None
        self.phases = {}
        self.redis.start()
        for server in self.servers:
            server.start()
        async with asyncio.timeout(120):
            for server in self.servers:
                await server.is_ready.wait()
        await asyncio.sleep(2 * LEASE)
        self.counting.counts.clear()
        begun = self.loop.time()
        clients = [self.conversation._machines.process(f"client{number}", number, TENANTS[0])
                   for number in range(len(self.servers))]
        await asyncio.gather(*(one.spawn(self._work(number), "client") for number, one in enumerate(clients)))
        await asyncio.sleep(begun + WORK_SECONDS - self.loop.time())
        self.phases["work"] = Counter(self.counting.counts)
        self.counting.counts.clear()
        await asyncio.sleep(IDLE_SECONDS)
        self.phases["idle"] = Counter(self.counting.counts)
        self.outcome.broken += [f"the simulated Redis does not know {one}" for one in self.counting.unknown]

    async def _work(self, number: int) -> None:
        async with http_client() as http:
            await asyncio.gather(*(self._converse(http, number) for _ in range(SESSIONS)))

    async def _converse(self, http: aiohttp.ClientSession, number: int) -> None:
        """A session here, a turn that is watched at the next replica, and a turn that is asked for at the one after."""
        made = await self._post(http, number, "/aap/sessions", {"agent": {"name": "demo"}})
        turns = f"/aap/sessions/{made['sessionId']}/turns"
        first = asyncio.create_task(self._ask(http, number, turns))
        await asyncio.sleep(0.3)
        await self._get(http, number + 1, f"{turns}/current?after=0")
        await first
        await self._ask(http, number + 2, turns)

    async def _ask(self, http: aiohttp.ClientSession, number: int, path: str) -> None:
        said = {"role": "user", "content": f"/slow {DELTAS}"}
        async with http.post(self._url(number, path), json={"stream": "delta", "messages": [said]}) as answer:
            assert (await answer.read()).count(b"event: text_delta") >= DELTAS, f"a turn at {number} was torn"

    async def _post(self, http: aiohttp.ClientSession, number: int, path: str, body: object) -> Any:
        async with http.post(self._url(number, path), json=body) as answer:
            assert answer.status == 201, await answer.text()
            return await answer.json()

    async def _get(self, http: aiohttp.ClientSession, number: int, path: str) -> None:
        async with http.get(self._url(number, path)) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()

    def _url(self, number: int, path: str) -> str:
        return f"http://{self.servers[number % len(self.servers)].host}:{PORT}{path}"


def count_fleet(replicas: int) -> dict[str, Counter[str]]:
    """What a fleet of this size does, by phase; within `simulation()`."""
    plan = Plan(seed=replicas, servers=replicas, log="redis", lease=LEASE, delay=0.0005, seconds=0, turns=0, clients=(),
                watched=0, faults=(), users=0)
    worlds = list[FleetWorld]()

    def make(*given: Any, **named: Any) -> FleetWorld:
        worlds.append(FleetWorld(*given, **named))
        return worlds[-1]

    outcome = run_world(plan, make=make)
    if outcome.broken:
        raise AssertionError("\n".join(outcome.broken))
    return worlds[0].phases


def exponent(totals: Mapping[int, float]) -> float:
    """The slope of the straight line through the logarithms of large fleets: 1 is linear, 2 the square."""
    points = [(log(replicas), log(max(total, 1.0))) for replicas, total in totals.items() if replicas >= LARGE]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def counted_fleets(sizes: Sequence[int] = SIZES) -> list[FleetCount]:
    """What each replica causes in fleets of these sizes, and the exponent with which the fleet's total grows."""
    with simulation():
        found = {replicas: count_fleet(replicas) for replicas in sizes}
    rows = list[FleetCount]()
    for phase in ("work", "idle"):
        for name in NAMES:
            totals = {replicas: float(phases[phase][name]) for replicas, phases in found.items()}
            if any(totals.values()):
                each = {replicas: round(total / replicas, 1) for replicas, total in totals.items()}
                rows.append(FleetCount(name=f"{phase}: {name}", by_replicas=each, exponent=round(exponent(totals), 2)))
    return rows
