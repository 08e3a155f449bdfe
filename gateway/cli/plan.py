"""`dragoman plan`: how many replicas and primaries of Redis a load needs, by costs that were measured."""

from typing import TYPE_CHECKING, Annotated

import typer

from .options import report_errors

if TYPE_CHECKING:
    from gateway.capacity import Carried, Demand, Plan, ServerNeed

Sessions = Annotated[float, typer.Option(help="Sessions that are stored.")]
Turns = Annotated[float, typer.Option(help="Turns that begin in a second.")]
Watchers = Annotated[float, typer.Option(help="Clients that watch each turn, beside the one that began it.")]
Deltas = Annotated[float, typer.Option(help="Deltas of a turn; a model writes 20 in a second.")]
TurnsPerSession = Annotated[float, typer.Option(help="Turns of a session, all its life.")]
Margin = Annotated[float, typer.Option(help="Percent of cores, memory and connections that stay free.")]
Spare = Annotated[float, typer.Option(help="Replicas that may be down while the others carry the load.")]
ReplicaMemory = Annotated[float, typer.Option(help="Megabytes that a replica may have.")]
PrimaryMemory = Annotated[float, typer.Option(help="Megabytes that a primary of Redis may have.")]
Cached = Annotated[float, typer.Option(help="`limits.cached_sessions` of each replica.")]
Connections = Annotated[float, typer.Option(help="`limits.max_connections` of each replica.")]
Speed = Annotated[float, typer.Option(help="How many times as fast a core is as a measured one.")]
HEADINGS = ("", "COUNT", "CPU", "MEMORY", "DECIDED BY", "MOST OF THE CPU")


def plan(
    sessions: Sessions = 0,
    turns_per_second: Turns = 0,
    watchers: Watchers = 0,
    deltas_per_turn: Deltas = 200,
    turns_per_session: TurnsPerSession = 10,
    margin: Margin = 50,
    spare: Spare = 1,
    replica_memory: ReplicaMemory = 2_048,
    primary_memory: PrimaryMemory = 16_384,
    cached_sessions: Cached = 5_000,
    max_connections: Connections = 20_000,
    speed: Speed = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compute how many replicas and primaries of Redis a load needs, and what runs out first.

    Example: [b]dragoman plan --sessions 1000000 --turns-per-second 500 --watchers 2[/b]

    Without a load: what one replica and one primary carry. The costs were measured on one machine; docs/capacity.md
    says which, and how to measure on another one.
    """
    with report_errors():
        from gateway.capacity import Demand, make_plan, one_carries, read_coefficients

        demand = Demand(
            sessions=sessions, turns_per_second=turns_per_second, watchers=watchers, deltas_per_turn=deltas_per_turn,
            turns_per_session=turns_per_session, margin=margin, spare=spare, replica_memory=replica_memory,
            primary_memory=primary_memory, cached_sessions=cached_sessions, max_connections=max_connections,
            speed=speed)
        compute = make_plan if sessions or turns_per_second else one_carries
        found = compute(demand, read_coefficients())
    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
        return
    typer.echo("\n".join([*_lines(found), "", "Assumed:", *(f"- {one}" for one in found.assumptions)]))


def _lines(found: "Plan | Carried") -> list[str]:
    from gateway.capacity import Plan

    return _plan_lines(found) if isinstance(found, Plan) else _carried_lines(found)


def _plan_lines(found: "Plan") -> list[str]:
    rows = [HEADINGS, _row("replicas", found.replicas, found.demand), _row("primaries", found.primaries, None)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(f"{word:{width}}" for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [f"{found.running_turns:,.0f} turns run at a time, with {found.streams:,.0f} open streams.", "", *table, "",
            f"Used most: {found.runs_out_first}."]


def _row(name: str, need: "ServerNeed", demand: "Demand | None") -> tuple[str, ...]:
    from gateway.capacity import COST_NAMES

    spare = f" + {demand.spare:,.0f} spare" if demand is not None and demand.spare else ""
    return (name, f"{need.count:,}{spare}", f"{100 * need.cpu:.0f} %", f"{need.memory:,.0f} MB", need.decided_by,
            f"{100 * need.largest_share:.0f} %: {COST_NAMES[need.largest_cost]}")


def _carried_lines(found: "Carried") -> list[str]:
    demand = found.demand
    return [
        f"One replica alone carries {_number(found.replica_turns)} turns per second: "
        f"{found.replica_turns * demand.turn_seconds:,.0f} turns at a time, {found.replica_streams:,.0f} open streams.",
        f"What ends is its {found.replica_turns_end_with}; its memory is {found.replica_memory:,.0f} MB then.",
        f"One primary of Redis carries {_number(found.primary_turns)} turns per second, and stores "
        f"{found.primary_sessions:,.0f} sessions of {demand.turns_per_session:,g} turns.",
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
