"""Worlds that are aimed at one thing: the same fault in every seed, at another moment."""

from dataclasses import replace
from random import Random

from tests.prove.simulation.losses import LOSSES
from tests.prove.simulation.plan import SINGLE_SERVER, Fault, Plan, plan_of

LEASE = 1.5
"""Seconds, as the fleet of real processes has it."""
FAULTS = {
    "kill": (("kill", 1.0),),
    "stop": (("stop", 1.0),),
    "pause": (("pause", 2 * LEASE),),
    "cut": (("block_redis", 2 * LEASE),),
    "hush": (("part_redis", 2 * LEASE),),
    "silence": (("part_redis", 2 * LEASE + 4.0),),
    "redis": (("redis_restart", 1.0),),
    "others": (("cut_others", 0.1),) * 4,
    "disk": (("slow_kill", 1.0),) * 4,
}
"""By name: what goes wrong, and for how many seconds; `silence` lasts longer than any call is tried again."""
FURTHER = {
    "away": (("block_keyed", 3 * LEASE),),
    "keyed": (("cut_keyed", 0.1),) * 4,
    "mended": (("block_redis", 0.5), ("part_redis", 2 * LEASE), ("sever_redis", 0.1), ("block_redis", 2 * LEASE)),
}
"""Those that are not compared with real processes: `away` and `keyed` come while a request with an idempotency key is
carried out; `mended` cuts the network to Redis in several ways, after each of which all must be well.
"""
SINGLE = ("disk",)
"""Those that happen to a single server on SQLite."""
DELAYS = {"others": (0.01,), "away": (0.005,), "keyed": (0.01,)}
"""By name: how many seconds a message is on its way, where a slow network shows more."""
LOSS_DAY = 24
"""One world of so many ends with a loss; the others are over when everything was mended."""
REST_SECONDS = {"mended": (2.0, 7.0)}
"""By name: how long at least, and at most, everything is well between two faults; otherwise 0.5 to 2 seconds."""
NAMES = (*FAULTS, *FURTHER, *LOSSES)
CALM_SECONDS = 8.0
"""How long the clients go on after everything was mended."""


def any_world(seed: int) -> Plan:
    """The world of this seed; one of so many ends with a machine that loses its power."""
    if seed % LOSS_DAY:
        return plan_of(seed)
    return loss_day(LOSSES[seed // LOSS_DAY % len(LOSSES)], seed)


def loss_day(loss: str, seed: int) -> Plan:
    """A world that ends with a machine that loses its power."""
    plan, is_single = plan_of(seed * SINGLE_SERVER if loss == "sqlite" else seed * SINGLE_SERVER + 1), loss == "sqlite"
    return replace(
        plan, seed=seed, servers=1 if is_single else 3, lease=LEASE, seconds=plan.seconds / 2, turns=40, faults=(),
        loss=loss, durability="fsync" if loss == "words" else "normal", keepers=0)


def scenario(name: str, seed: int) -> Plan:
    """What the scenario is named after happens to two of three servers, one after the other; or twice to the only one.
    """
    if name in LOSSES:
        return loss_day(name, seed)
    chance, faults, at = Random(f"{name} {seed}"), list[Fault](), 1.0
    any_plan = plan_of(SINGLE_SERVER if name in SINGLE else 1)
    for target in (0, 0) if name in SINGLE else chance.sample(range(3), 2):
        for kind, seconds in {**FAULTS, **FURTHER}[name]:
            at += chance.uniform(*REST_SECONDS.get(name, (0.5, 2.0)))
            faults.append(Fault(at, kind, target, seconds))
            at += seconds
    return replace(
        any_plan, seed=seed, lease=LEASE, delay=chance.choice(DELAYS.get(name, (0.0002, 0.001))),
        seconds=at + CALM_SECONDS, faults=tuple(faults), watched=2, turns=100)
