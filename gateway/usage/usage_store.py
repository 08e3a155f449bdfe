"""The stored counts: one resource per day, to which every server of the log adds its own."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct, convert, to_builtins

from gateway.errors import Conflict, NotFound
from gateway.json_values import JsonObject
from gateway.ports import Resource, Resources
from gateway.quotas import SYSTEM_OWNER

KIND = "usage"
KEPT_DAYS = 90
"""How many days are kept."""
MAX_ROWS = 20_000
"""How many rows one day may have; uses beyond them are not stored."""
_ROWS = "rows"


class Use(NamedTuple):
    """What is counted: an endpoint or a feature, used by one client with one key in one dialect."""

    dialect: str
    key: str
    client: str
    kind: str
    name: str


class UsageRow(Struct, frozen=True, array_like=True):
    """How often a client used an endpoint or a feature on one day, and when last."""

    dialect: str
    key: str
    client: str
    kind: str
    name: str
    count: int
    last_at: float


class UsageStore:
    """Adds counts to the day, and reads days."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._day = ""

    async def add(self, counted: Mapping[Use, int], now: float) -> None:
        """Add the counts to those of today; the first use of a day deletes the days that are too old."""
        day = _day_of(now)

        def amended(body: JsonObject) -> JsonObject:
            return {_ROWS: to_builtins(_merged(rows_of(body), counted, now))}

        try:
            await self._resources.amend(KIND, SYSTEM_OWNER, day, amended)
        except NotFound:
            try:
                await self._resources.create(KIND, SYSTEM_OWNER, amended({}), resource_id=day)
            except Conflict:  # another server was first
                await self._resources.amend(KIND, SYSTEM_OWNER, day, amended)
        if day != self._day:
            self._day = day
            await self._forget_old(now)

    async def since(self, at: float) -> list[UsageRow]:
        """The rows of the days from that time on."""
        found = await self._resources.list(KIND, SYSTEM_OWNER, limit=KEPT_DAYS + 1)
        return rows_since(found, at)

    async def _forget_old(self, now: float) -> None:
        oldest = _day_of(now - KEPT_DAYS * 86_400)
        for one in await self._resources.list(KIND, SYSTEM_OWNER, limit=2 * KEPT_DAYS):
            if one.resource_id < oldest:
                await self._resources.delete(KIND, SYSTEM_OWNER, one.resource_id)


def rows_since(days: Iterable[Resource], at: float) -> list[UsageRow]:
    """The rows of these days that are not older than that time; a day counts as a whole."""
    return [row for day in days if day.resource_id >= _day_of(at) for row in rows_of(day.body)]


def rows_of(body: JsonObject) -> list[UsageRow]:
    """The rows of one stored day."""
    return convert(body.get(_ROWS, []), list[UsageRow])


def _merged(
    rows: Sequence[UsageRow], counted: Mapping[Use, int], now: float
) -> list[UsageRow]:
    by_use = {Use(row.dialect, row.key, row.client, row.kind, row.name): row for row in rows}
    for use, number in counted.items():
        old = by_use.get(use)
        if old is not None or len(by_use) < MAX_ROWS:
            by_use[use] = UsageRow(*use, number + (old.count if old else 0), max(now, old.last_at if old else 0.0))
    return list(by_use.values())


def _day_of(at: float) -> str:
    """The day in UTC; days sort as their names do."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=max(0.0, at))).date().isoformat()
