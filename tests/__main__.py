"""`make test`: lint, types and tests of everything, or of one room; tells at its end what they took and left out."""

import argparse
import difflib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.prove.proofs import InvalidProofs, find_proofs
from tests.support import parallel_pytest
from tests.support.child_commands import cpu_seconds

ROOT = Path(__file__).resolve().parents[1]
TYPED = ("gateway", "adapters", "mappings", "conformance")
NOT_ROOMS = ("prove", "support")
USAGE_ERROR = 2


@dataclass(frozen=True)
class Room:
    """A folder of tests, and the folder of sources that it mirrors, if there is one."""

    name: str
    tests: Path
    sources: Path | None

    @property
    def ruff(self) -> list[str]:
        return [str(folder) for folder in (self.sources, self.tests) if folder]

    @property
    def mypy(self) -> list[str] | None:
        """The package, if its types are checked."""
        is_typed = self.sources is not None and self.sources.parts[0] in TYPED
        return ["-p", ".".join(self.sources.parts)] if self.sources and is_typed else None


def find_rooms(root: Path) -> dict[str, Room]:
    """By name: every folder of tests, and every folder of tests of a dialect."""
    rooms = {}
    for parent in ("tests", "tests/adapters"):
        for folder in sorted((root / parent).iterdir()):
            if folder.is_dir() and folder.name not in NOT_ROOMS and any(folder.rglob("test_*.py")):
                tests = folder.relative_to(root)
                mirrored = Path(*tests.parts[1:])
                places = [place for place in (Path("gateway") / mirrored, mirrored) if (root / place).is_dir()]
                rooms[folder.name] = Room(folder.name, tests, places[0] if places else None)
    return rooms


@dataclass
class Step:
    """One of the commands of a run: what it is called, and how it ended."""

    name: str
    code: int

    @property
    def is_passed(self) -> bool:
        return self.code == 0


class Suite:
    """Lint, types and tests: all of them run, whichever fails."""

    def __init__(self, root: Path, room: Room | None, workers: int, further: Sequence[str]) -> None:
        self.root, self.room, self.workers, self.further = root, room, workers, further
        self.steps: list[Step] = []
        self.tests = "no tests"
        self._began = time.monotonic()

    def run(self) -> None:
        """Types are checked beside the tests; what they find is printed after the tests."""
        with self._tool("ruff", "check", *(self.room.ruff if self.room else ["."])) as lint:
            self.steps.append(Step("lint", lint.wait()))
        words = self.room.mypy if self.room else []
        with TemporaryDirectory() as folder, ExitStack() as beside:
            findings = Path(folder) / "types.txt"
            if words is not None:
                types = beside.enter_context(self._tool("mypy", *words, output=findings))
            place = [str(self.room.tests)] if self.room else []
            if self.workers:
                code, reports = parallel_pytest.run(self.workers, self.root, Path(folder), [*place, *self.further])
            else:
                reports = [Path(folder) / "tests.xml"]
                with self._tool("pytest", f"--junit-xml={reports[0]}", *place, *self.further) as tests:
                    code = tests.wait()
            self.steps.append(Step("tests", code))
            self.tests = counted(reports)
            if words is not None:
                self.steps.insert(1, Step("types", types.wait()))
                print(findings.read_text() if types.returncode else "", end="", flush=True)

    @contextmanager
    def _tool(self, name: str, *words: str, output: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """A tool of the environment that runs; whoever leaves it early interrupts it and waits for its end."""
        with output.open("wb") if output else nullcontext() as file:
            tool = subprocess.Popen([sys.executable, "-m", name, *words], cwd=self.root, stdout=file, stderr=file)
        try:
            yield tool
        except KeyboardInterrupt:  # Ctrl-C reached the tool as well
            tool.wait()
            raise
        finally:
            if tool.poll() is None:
                tool.send_signal(signal.SIGINT)
                tool.wait()

    def tell(self) -> None:
        print("\n" + ", ".join(f"{step.name} {'passed' if step.is_passed else 'FAILED'}" for step in self.steps)
              + f"; {self.tests}")
        print(f"{_span(time.monotonic() - self._began)}, {_span(cpu_seconds())} of CPU (lint, types and tests)")
        if self.room is not None:
            print("not run here: the other rooms: make test")
        elif proofs := proof_names(self.root):
            print(f"not run here: {', '.join(proofs)}: make prove")

    @property
    def exit_code(self) -> int:
        return 0 if all(step.is_passed for step in self.steps) else 1


def counted(reports: Sequence[Path]) -> str:
    """How many tests passed and did not, from pytest's reports; a run that broke has none."""
    try:
        suites = [suite for report in reports for suite in ElementTree.parse(report).getroot().iter("testsuite")]
        counts = [{name: int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
                  for suite in suites]
    except (OSError, ElementTree.ParseError):
        return "the tests did not come to their end"
    tests, *others = (sum(count[name] for count in counts) for name in ("tests", "failures", "errors", "skipped"))
    told = [f"{tests - sum(others):,} tests passed"]
    for number, word in zip(others, ("failed", "broke", "skipped"), strict=True):
        told += [f"{number:,} {word}"] if number else []
    return ", ".join(told)


def proof_names(root: Path) -> list[str]:
    """What `make prove` runs; a proof that cannot be read is told there."""
    with suppress(InvalidProofs, OSError):
        return [proof.name for proof in find_proofs(root)]
    return []


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _named(name: str, rooms: dict[str, Room]) -> Room | None:
    """The room of this name, or of the path of its tests or sources."""
    wanted = Path(name)
    return next((room for room in rooms.values() if wanted in (Path(room.name), room.tests, room.sources)), None)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(prog="make test", description=__doc__)
    parser.add_argument("--room", help="only lint, types and tests of this room")
    parser.add_argument("--workers", type=int, default=0, help="in how many processes pytest runs; 0: in one")
    parser.add_argument("further", nargs="*", metavar="-- arguments of pytest")
    given = parser.parse_args(arguments)
    rooms = find_rooms(root)
    room = _named(given.room, rooms) if given.room else None
    if given.room and room is None:
        near = difflib.get_close_matches(given.room, rooms, 1)
        hint = f"; did you mean {near[0]}?" if near else "."
        print(f"make test: there is no room {given.room!r}{hint} Rooms: {', '.join(sorted(rooms))}", file=sys.stderr)
        return USAGE_ERROR
    suite = Suite(root, room, given.workers, given.further)
    try:
        suite.run()
    except KeyboardInterrupt:
        return 130
    suite.tell()
    return suite.exit_code


def _terminated(number: int, frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(main())
