"""The scenarios by name, and the columns of their table."""

from bench.servers import BARE, DURABLE

from .cpu import COLUMNS as CPU_COLUMNS
from .cpu import measure_cpu
from .durable import measure_durable
from .fleet import COLUMNS as FLEET_COLUMNS
from .fleet import measure_fleet
from .growth import COLUMNS as GROWTH_COLUMNS
from .growth import GROWTH_PARTS, measure_growth
from .http_clients import COLUMNS as CLIENT_COLUMNS
from .http_clients import measure_http_clients
from .long_replies import replies
from .memory import measure_memory, start_up
from .runner import OURS, Scenario
from .streaming import first_event, short_turns, stream_burst, stream_paced
from .telemetry import COLUMNS as TELEMETRY_COLUMNS
from .telemetry import measure_telemetry
from .transports import measure_transports
from .upstream import COLUMNS as UPSTREAM_COLUMNS
from .upstream import measure_upstream
from .workers import COLUMNS as WORKERS_COLUMNS
from .workers import measure_workers

SCENARIOS: dict[str, Scenario] = {
    "burst": stream_burst,
    "turn": short_turns,
    "cpu": measure_cpu,
    "paced": stream_paced,
    "first": first_event,
    "durable": measure_durable,
    "memory": measure_memory,
    "start": start_up,
    "growth": measure_growth,
    "replies": replies,
    "upstream": measure_upstream,
    "workers": measure_workers,
    "fleet": measure_fleet,
    "telemetry": measure_telemetry,
    "transports": measure_transports,
    "client": measure_http_clients,
}
COLUMNS = (OURS, BARE.name, DURABLE.name)
PARTS: dict[str, Scenario] = GROWTH_PARTS
"""Parts of scenarios that can be asked for alone."""
COLUMNS_OF = {
    "upstream": UPSTREAM_COLUMNS, "growth": GROWTH_COLUMNS, "workers": WORKERS_COLUMNS, "client": CLIENT_COLUMNS,
    "fleet": FLEET_COLUMNS, "cpu": CPU_COLUMNS, "telemetry": TELEMETRY_COLUMNS,
}
"""The columns of scenarios that have a table of their own."""
