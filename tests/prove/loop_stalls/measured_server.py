"""A gateway in a process of its own that has much data, and tells how long its event loop stalled.

    python -m tests.prove.loop_stalls.measured_server <config.yaml>

`GET /stall` tells the longest time between two ticks of the loop since it was last asked, in milliseconds, and for how
much of that time the loop's thread was at work; `GET /data` tells the ids of what there is, and the routes.
"""

import asyncio
import gc
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web

import gateway.model as m
from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from gateway.http import json_response, public
from gateway.logging import configure_logging
from gateway.resources import Memories, Memory, ScheduledTask, Schedules
from gateway.server import GC_THRESHOLDS

EVERY = 0.002
TURNS, DELTAS, SEEDS = 1000, 50, 10_000
SESSIONS, MEMORIES, TASKS, LONG = 2000, 5000, 100, 8
LARGE_TURNS, LARGE_TEXT = 16, "word " * 1_000_000
OWNER = ""


class Stall:
    """The longest time between two ticks."""

    def __init__(self) -> None:
        self._longest = (0.0, 0.0)
        self._last = (time.perf_counter(), time.thread_time())

    def tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = (time.perf_counter(), time.thread_time())
        self._longest = max(self._longest, (now[0] - self._last[0] - EVERY, now[1] - self._last[1]))
        self._last = now
        loop.call_later(EVERY, self.tick, loop)

    @public
    async def show(self, request: web.Request) -> web.Response:
        longest, self._longest = self._longest, (0.0, 0.0)
        return json_response({"ms": longest[0] * 1000, "work_ms": longest[1] * 1000})


def long_session(turns: int = TURNS, text: str = "") -> list[m.Record]:
    """Turns of fifty words, each an answer to this text."""
    events: list[tuple[Any, str | None]] = [(m.SessionCreated(agent="demo", owner=OWNER, title="long"), None)]
    for number in range(turns):
        turn, message, block, words = f"turn_{number}", f"msg_{number}", f"block_{number}", f"word {number} " * DELTAS
        size = len(words) // DELTAS
        told: list[Any] = [
            m.InputAccepted(command_id=f"cmd_{number}", command=m.SendMessage(content=f"say {number}{text}")),
            m.TurnStarted(command_id=f"cmd_{number}"),
            m.MessageStarted(message_id=message, role=m.Role.ASSISTANT),
            m.BlockStarted(message_id=message, block_id=block, kind=m.BlockKind.TEXT),
            *(m.BlockDelta(message_id=message, block_id=block, kind=m.BlockKind.TEXT, delta=words[at:at + size])
              for at in range(0, len(words), size)),
            m.BlockEnded(message_id=message, block_id=block, kind=m.BlockKind.TEXT, text=words),
            m.MessageEnded(message_id=message, outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
            m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN),
        ]
        events += [(event, turn) for event in told]
    return [m.Record(seq=seq, at=1e9 + seq, session_id="s", event=event, turn_id=turn)
            for seq, (event, turn) in enumerate(events, 1)]


async def prepared(gateway: Gateway) -> dict[str, Any]:
    """Much of everything, and its ids."""
    records, sessions = long_session(), gateway.sessions
    longs = [(await sessions.import_session(OWNER, records)).session_id for _ in range(LONG)]
    large = (await sessions.import_session(OWNER, long_session(LARGE_TURNS, LARGE_TEXT))).session_id
    history = [m.SeedMessage(role=m.Role.USER, content=f"seed {number}") for number in range(SEEDS)]
    seeded = [(await sessions.create(OWNER, "demo", history=history)).session_id for _ in range(2)]
    for _ in range(SESSIONS // 100):
        await asyncio.gather(*(sessions.create(OWNER, "demo", title=f"one of many {n}") for n in range(100)))
    schedules, memories = Schedules(gateway.resources, time.time), Memories(gateway.resources)
    tasks = [
        await schedules.add(OWNER, ScheduledTask(title="t", prompt="p", cron="* * * * *", agent="demo", enabled=True))
        for _ in range(TASKS)
    ]
    for start in range(0, MEMORIES, 500):
        await asyncio.gather(*(
            gateway.resources.create("note", OWNER, {"content": f"memory {start + n} " * 20}) for n in range(500)))
    kept = await memories.add(OWNER, Memory(content="the last"))
    return {"longs": longs, "large": large, "seeded": seeded, "task": tasks[0].task_id, "memory": kept.number}


async def main(file: Path) -> None:
    configure_logging("json", "error")  # nobody reads a journal here, and a pipe that is full would stall us
    gateway = Gateway(load_components(load_config(file)))
    gateway.components.config.data.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    routes = sorted({
        (route.method, route.resource.canonical) for route in gateway.web.router.routes() if route.resource
    })

    @public
    async def data(request: web.Request) -> web.Response:
        return json_response({**found, "routes": routes})

    stall = Stall()
    gateway.web.router.add_get("/stall", stall.show)
    gateway.web.router.add_get("/data", data)
    runner = web.AppRunner(gateway.web, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    found |= await prepared(gateway)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gateway.readiness.mark_ready()
    loop = asyncio.get_running_loop()
    stall.tick(loop)
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1])))
