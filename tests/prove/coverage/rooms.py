"""Lines and covered lines per room, read from a data file of coverage."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from coverage import Coverage

PACKAGES = ("gateway", "adapters", "mappings", "conformance")


@dataclass
class Room:
    """How many lines of a room are code, and how many of them ran; per file, the number of lines that did not."""

    lines: int = 0
    covered: int = 0
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.lines if self.lines else 100.0


Rooms = dict[str, Room]


def room_of(file: Path) -> str:
    """A folder below a package is a room (gateway/engine); what lies in the package itself is the package."""
    return "/".join(file.parts[:2]) if len(file.parts) > 2 else file.parts[0]


def source_files(root: Path) -> list[Path]:
    """All modules, whether or not anybody imported them, relative to the root."""
    return sorted(path.relative_to(root) for package in PACKAGES for path in (root / package).rglob("*.py"))


def root_of(measured: Iterable[str]) -> Path | None:
    """The tree that was measured: what comes before `gateway/` in the name of a file."""
    for name in sorted(measured):
        for parent in Path(name).parents:
            if parent.name in PACKAGES and all((parent.parent / package).is_dir() for package in PACKAGES):
                return parent.parent
    return None


def read_rooms(data: Path) -> Rooms:
    """The rooms of the tree that this data file (or folder of data files) is about."""
    coverage = Coverage(data_file=str(data if data.is_file() else data / "combined"), config_file=False)
    if data.is_file():
        coverage.load()
    else:
        parts = [str(part) for part in data.glob(".coverage*")]
        coverage.combine(parts, keep=True)
    root = root_of(coverage.get_data().measured_files())
    if root is None:
        raise ValueError(f"{data} knows no file of {', '.join(PACKAGES)}")
    rooms: Rooms = {}
    for file in source_files(root):
        _, statements, _, missing, _ = coverage.analysis2(str(root / file))
        room = rooms.setdefault(room_of(file), Room())
        room.lines += len(statements)
        room.covered += len(statements) - len(missing)
        if missing:
            room.missing[str(file)] = len(missing)
    return dict(sorted(rooms.items()))


def total(rooms: Rooms) -> Room:
    return Room(sum(room.lines for room in rooms.values()), sum(room.covered for room in rooms.values()))


def write_rooms(rooms: Rooms, file: Path) -> None:
    told = {name: {**asdict(room), "percent": round(room.percent, 2)} for name, room in rooms.items()}
    file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def load_rooms(file: Path) -> Rooms:
    said = json.loads(file.read_text(encoding="utf-8"))
    return {name: Room(room["lines"], room["covered"], room["missing"]) for name, room in said.items()}


def table(rooms: Rooms, earlier: Rooms | None = None) -> str:
    """One line per room, and one for all of them."""
    comparison = f" {'earlier':>8} {'change':>7}" if earlier else ""
    rows = [f"{'room':24} {'lines':>7} {'covered':>8} {'percent':>8}{comparison}"]
    for name, room in {**rooms, "all": total(rooms)}.items():
        row = f"{name:24} {room.lines:7} {room.covered:8} {room.percent:8.2f}"
        before = None if earlier is None else {**earlier, "all": total(earlier)}.get(name)
        rows.append(row + (f" {before.percent:8.2f} {room.percent - before.percent:+7.2f}" if before else ""))
    return "\n".join(rows)


def losses(rooms: Rooms, earlier: Rooms, allowed: float) -> list[str]:
    """Rooms that lost more than so many percentage points, each with the files that have more missing lines."""
    told = []
    for name, room in rooms.items():
        before = earlier.get(name)
        if before is None or before.percent - room.percent <= allowed:
            continue
        files = [f"{file} ({before.missing.get(file, 0)} -> {count} missing)"
                 for file, count in room.missing.items() if count > before.missing.get(file, 0)]
        told.append(f"{name} is covered less: {before.percent:.2f} -> {room.percent:.2f} percent; {', '.join(files)}")
    return told
