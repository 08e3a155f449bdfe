"""While Redis is away nothing is said to be gone, and what is refused has not happened, in every dialect."""

import asyncio
from pathlib import Path

import pytest

from tests.prove.crash.history import times_there
from tests.security.test_refused_messages import FULL, OK, UNCERTAIN, WAYS
from tests.support.cluster.fleet_in_loop import FleetInLoop, fleet_in_loop
from tests.support.gateway_server import Served

READS = ("/aap/sessions/{}", "/api/v1/cloud/sessions/{}", "/api/sessions/{}", "/api/v1/conversations/{}", "/replay/{}")
SAID = [way for way in WAYS if "compact" not in way and way != "zenflux new"]
LEASE = 0.6


async def created(served: Served) -> str:
    async with served.http.post(served.url("/aap/sessions"), json={"agent": {"name": "demo"}}) as answer:
        return str((await answer.json())["sessionId"])


async def judged(fleet: FleetInLoop, sessions: dict[str, str], told: dict[str, str]) -> None:
    """What was refused is in no log, and what was taken is."""
    served = fleet.servers[0].served
    for way, session in sessions.items():
        records = await served.gateway.sessions.records("", session)
        times = times_there(f"word{SAID.index(way)}", records)
        assert told[way] in (OK, FULL, UNCERTAIN), (way, told[way])
        assert times == {OK: 1, FULL: 0}.get(told[way], times), (way, told[way], times)


@pytest.mark.parametrize("how", ["cut", "hush"])
async def test_what_is_refused_while_redis_is_away_is_not_in_the_log_when_it_is_back(tmp_path: Path, how: str) -> None:
    """A line that is cut takes nothing; one that is hushed carries what was said to Redis when it is mended."""
    async with fleet_in_loop(tmp_path, 1, LEASE) as fleet:
        served, wire = fleet.servers[0].served, fleet.wires[0]
        sessions = {way: await created(served) for way in SAID}
        getattr(wire, how)()
        saying = [WAYS[way](served, session, f"hello word{SAID.index(way)}") for way, session in sessions.items()]
        told = dict(zip(sessions, await asyncio.gather(*saying), strict=True))
        assert OK not in told.values()
        for path in READS:
            async with served.http.get(served.url(path.format(sessions["aap"]))) as answer:
                assert answer.status in (200, 503), (path, await answer.text())
        wire.mend()
        await served.gateway.sessions._leases.renew()
        await served.gateway.runtime.log.flush()  # type: ignore[attr-defined]
        await judged(fleet, sessions, told)
