"""Servers of every dialect that damage a share of what they say, at random."""

from collections.abc import Callable
from typing import Any

from conformance.kit.verdict import Report
from tests.support.conformance.damage import Damage
from tests.support.conformance.examination_facts import EXAMINED, examination_facts
from tests.support.conformance.examinations import examine_server, stumbles

WITHIN = 1.0
AT_ONCE = 16
DAMAGED: dict[str, Callable[[Damage], Any]] = {
    name: damaged for name in EXAMINED if (damaged := examination_facts(name).damaged) is not None
}


async def examine_damaged(dialect: str, seed: int, share: float, *ids: str) -> tuple[Report, list[str]]:
    """Examine a server that damages this share of what it says: the report, and where examiners broke."""
    server = DAMAGED[dialect](Damage(seed, share))
    report = await examine_server(dialect, server, *ids, within=WITHIN, at_once=AT_ONCE)
    return report, stumbles(report)
