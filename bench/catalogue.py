"""The scenarios by name, and the columns of their table."""

from .durable import durable
from .replies import replies
from .scenarios import (
    OURS,
    Scenario,
    first_event,
    growth,
    memory,
    short_turns,
    start_up,
    stream_burst,
    stream_paced,
)
from .servers import BARE, DURABLE
from .upstream import COLUMNS as UPSTREAM_COLUMNS
from .upstream import upstream

SCENARIOS: dict[str, Scenario] = {
    "burst": stream_burst,
    "turn": short_turns,
    "paced": stream_paced,
    "first": first_event,
    "durable": durable,
    "memory": memory,
    "start": start_up,
    "growth": growth,
    "replies": replies,
    "upstream": upstream,
}
COLUMNS = (OURS, BARE.name, DURABLE.name)
COLUMNS_OF = {"upstream": UPSTREAM_COLUMNS}
"""The columns of scenarios that have a table of their own."""
