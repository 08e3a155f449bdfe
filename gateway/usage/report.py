"""The stored rows, client by client: since when, how often, which endpoints and which features."""

import re
from collections.abc import Iterable

from msgspec import Struct

from gateway.errors import Invalid

from .usage_counts import FEATURE
from .usage_store import UsageRow

_AGE = re.compile(r"(\d{1,5})([dhm])")
_SECONDS = {"d": 86_400, "h": 3600, "m": 60}


class ClientUsage(Struct, kw_only=True):
    """What one client has used in one dialect with one key."""

    dialect: str
    key: str
    client: str
    requests: int = 0
    last_at: float = 0.0
    endpoints: dict[str, int] = {}
    features: dict[str, int] = {}


def client_usage(rows: Iterable[UsageRow], since: float = 0.0) -> list[ClientUsage]:
    """The clients that were seen since then, by dialect; in each dialect, those with most requests first."""
    found: dict[tuple[str, str, str], ClientUsage] = {}
    for row in rows:
        if row.last_at < since:
            continue
        one = found.setdefault(
            (row.dialect, row.key, row.client), ClientUsage(dialect=row.dialect, key=row.key, client=row.client))
        one.last_at = max(one.last_at, row.last_at)
        names = one.features if row.kind == FEATURE else one.endpoints
        names[row.name] = names.get(row.name, 0) + row.count
        one.requests += 0 if row.kind == FEATURE else row.count
    for one in found.values():
        one.endpoints, one.features = _most_first(one.endpoints), _most_first(one.features)
    return sorted(found.values(), key=lambda one: (one.dialect, -one.requests, one.key, one.client))


def parse_age(age: str) -> float:
    """The seconds of an age such as 7d, 12h or 30m; raises `Invalid`."""
    found = _AGE.fullmatch(age)
    if found is None:
        raise Invalid(f"must be a number of days, hours or minutes such as 7d, 12h or 30m, not '{age}'")
    return float(int(found[1]) * _SECONDS[found[2]])


def _most_first(numbers: dict[str, int]) -> dict[str, int]:
    return dict(sorted(numbers.items(), key=lambda row: (-row[1], row[0])))
