"""The tables of docs/capacity.md, and the sessions of `dragoman plan` in all pages, as the coefficients say."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from typer.testing import CliRunner

from gateway.capacity import COST_NAMES, Coefficients, read_coefficients
from gateway.cli import app

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "capacity.md"
PAGES = (PAGE, ROOT / "docs" / "production.md")
COMMAND = ".venv/bin/dragoman "
SESSION = re.compile(rf"^\$ {re.escape(COMMAND)}(plan\b.*)\n((?:(?!```|\$ ).*\n)*)", re.MULTILINE)
TABLE = re.compile(r"(<!-- (\w+): written by the proof -->\n)(.*?)(\n<!-- end -->)", re.DOTALL)
KIB = 1024


def written(text: str, costs: Coefficients) -> str:
    """The page with the tables of these coefficients, and with what the commands print."""
    text = TABLE.sub(lambda found: found[1] + "\n" + TABLES[found[2]](costs) + found[4], text)
    return SESSION.sub(lambda found: f"$ {COMMAND}{found[1]}\n{printed(found[1])}", text)


def write_pages() -> None:
    """Write all pages anew, by the stored coefficients."""
    costs = read_coefficients()
    for page in PAGES:
        page.write_text(written(page.read_text(encoding="utf-8"), costs), encoding="utf-8")


def printed(words: str) -> str:
    done = CliRunner().invoke(app, words.split())
    if done.exit_code:
        raise ValueError(f"dragoman {words}: {done.output}")
    return done.output


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join([_line(headings), _line(["---"] * len(headings)), *map(_line, rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def machine_table(costs: Coefficients) -> str:
    machine = costs.machine
    rows = [
        ("processor", machine.processor), ("cores", str(machine.cores)),
        *((name, version) for name, version in machine.versions.items()),
        ("size of the run", machine.size),
        ("load of the machine when it began and ended (average of five minutes)",
         " and ".join(f"{load:.1f}" for load in machine.load)),
        ("seconds for which replicas waited for a core, for each second of CPU", f"{machine.waited:.2f}"),
        ("seconds that deltas waited for others which were stored with them",
         ", ".join(f"{one.commit_seconds:.4f} ({_primaries(one.primaries)})" for one in costs.cpu)),
    ]
    return table(("", ""), rows)


def _primaries(count: int) -> str:
    return "one primary" if count == 1 else f"{count} primaries"


def costs_table(costs: Coefficients) -> str:
    headings = ["", "name"]
    for one in costs.cpu:
        headings += [f"replica, {_primaries(one.primaries)}", f"Redis, {_primaries(one.primaries)}"]
    sides = [side for one in costs.cpu for side in (one.replica, one.redis)]
    return table(headings, [
        [said, f"`{name}`", *(_micros(getattr(side, name)) for side in sides)] for name, said in COST_NAMES.items()])


def _micros(value: float) -> str:
    return "–" if value == 0 else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def memory_table(costs: Coefficients) -> str:
    replica, redis = costs.replica_memory, costs.redis_memory
    return table(("", "replica", "Redis"), [
        ("the process, without sessions", _size(replica.process), _size(redis.process)),
        ("a session (replica: in its cache)", _size(replica.session), _size(redis.session)),
        ("a turn of it", _size(replica.turn), _size(redis.turn)),
        ("a delta of the turn", "–", _size(redis.delta)),
        ("a turn that runs, with one stream", _size(replica.running_turn), "–"),
        ("a further stream", _size(replica.stream), "–"),
    ])


def _size(size: float) -> str:
    if size >= KIB**2:
        return f"{size / KIB**2:.1f} MB"
    return f"{size / KIB:.1f} KB" if size >= KIB else f"{size:.0f} bytes"


def error(model: float, measured: float) -> float:
    """By how much the model is wrong, as a part of what was measured; positive if it says too much."""
    return model / measured - 1 if measured else 0.0


def loads_table(costs: Coefficients) -> str:
    def row(name: str, replicas: str, primaries: str, sides: Sequence[tuple[float, float]]) -> list[str]:
        cells = [f"{measured:.3f} | {model:.3f} | {100 * error(model, measured):+.0f} %" for measured, model in sides]
        return [name, replicas, primaries, *cells]

    headings = ["load", "replicas", "primaries", "replicas, s", "model", "error", "Redis, s", "model", "error"]
    return table(headings, [
        row(f"**twice as large:** {one.name}" if one.is_check else one.name, str(one.replicas), str(one.primaries),
            [(one.replica_cpu, one.replica_model), (one.redis_cpu, one.redis_model)])
        for one in sorted(costs.loads, key=lambda one: (one.primaries, one.is_check))])


def checks_table(costs: Coefficients) -> str:
    return table(("twice as large", "measured", "model", "error"), [
        (one.name, _size(one.measured), _size(one.model), f"{100 * error(one.model, one.measured):+.0f} %")
        for one in costs.memory_checks])


def fleet_table(costs: Coefficients) -> str:
    sizes = sorted({size for one in costs.fleet for size in one.by_replicas})
    return table(("for each replica", *(f"{size} replicas" for size in sizes), "exponent"), [
        (one.name, *(f"{one.by_replicas[size]:,.1f}" for size in sizes), f"{one.exponent:.2f}") for one in costs.fleet])


TABLES: Mapping[str, Callable[[Coefficients], str]] = {
    "machine": machine_table, "costs": costs_table, "memory": memory_table, "loads": loads_table,
    "checks": checks_table, "fleet": fleet_table,
}
