"""What is measured, and how it is summed up: CPU and memory of a process, medians, spreads and paired ratios."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
CPUCLOCK_SCHED = 2
"""What makes the number of a process that of its clock; see clock_getcpuclockid(3)."""


class BenchFailure(Exception):
    """Something did not work, as opposed to being slow: the figures would mean nothing."""


@dataclass(frozen=True)
class Figure:
    """A median and how far the samples lay apart."""

    median: float
    low: float
    high: float
    samples: int


def figure(samples: Sequence[float]) -> Figure:
    if not samples:
        raise ValueError("a figure needs at least one sample")
    return Figure(median(samples), min(samples), max(samples), len(samples))


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """The ratios of runs that lay side by side in time, so that a noisy minute hits both."""
    return figure([mine / other for mine, other in zip(ours, theirs, strict=True)])


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that is at least as large as so many percent of them all."""
    ordered = sorted(samples)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


# -- processes --------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class CpuTime:
    """What a process had of the CPU, and how long it waited for it because others had it; in seconds."""

    cpu: float
    waited: float

    def __sub__(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(self.cpu - before.cpu, max(0.0, self.waited - before.waited))

    def __add__(self, other: "CpuTime") -> "CpuTime":
        return CpuTime(self.cpu + other.cpu, self.waited + other.waited)


def cpu_time(pid: int) -> CpuTime:
    """All its threads together; what those had waited that have ended is forgotten."""
    waited = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # it has ended meanwhile
            waited += int(path.read_text().split()[1])
    return CpuTime(_cpu_seconds(pid), waited / 1e9)


def _cpu_seconds(pid: int) -> float:
    """To the nanosecond by the clock that the kernel keeps for each process, else in its ticks."""
    try:
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)
    except OSError:
        return _ticks(pid) / TICKS


def process_family(leader: int) -> list[int]:
    """Who belongs to the session of processes that this one leads, itself first."""
    others = list[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[3]) == leader and int(path.parent.name) != leader:
            others.append(int(path.parent.name))
    return [leader, *others]


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def rss_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


# -- cores ------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Cores:
    """Which core the servers have to themselves, and which the client; the same one if there is but one."""

    server: int
    client: int

    @property
    def are_apart(self) -> bool:
        return self.server != self.client


def choose_cores() -> Cores:
    allowed = sorted(os.sched_getaffinity(0))
    return Cores(server=allowed[0], client=allowed[-1])
