"""CPU and memory of a process; medians, spreads and paired ratios of samples."""

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
"""Turns the number of a process into that of its clock; see clock_getcpuclockid(3)."""


class BenchFailure(Exception):
    """Something does not work, as opposed to being slow: the figures would mean nothing."""


@dataclass(frozen=True)
class Figure:
    """A median and the spread of the samples."""

    median: float
    low: float
    high: float
    samples: int


def figure(samples: Sequence[float]) -> Figure:
    if not samples:
        raise ValueError("a figure needs at least one sample")
    return Figure(median(samples), min(samples), max(samples), len(samples))


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """The ratios of runs that were next to each other in time, so that noise affects both."""
    return figure([mine / other for mine, other in zip(ours, theirs, strict=True)])


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that is at least as large as so many percent of all samples."""
    ordered = sorted(samples)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


# -- processes --------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class CpuTime:
    """The CPU time of a process, and how long it waited for a core; in seconds."""

    cpu: float
    waited: float

    def __sub__(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(self.cpu - before.cpu, max(0.0, self.waited - before.waited))

    def __add__(self, other: "CpuTime") -> "CpuTime":
        return CpuTime(self.cpu + other.cpu, self.waited + other.waited)


def cpu_time(pid: int) -> CpuTime:
    """All threads of a process; the waiting time of threads that have ended is lost."""
    waited = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            waited += int(path.read_text().split()[1])
    return CpuTime(_cpu_seconds(pid), waited / 1e9)


def _cpu_seconds(pid: int) -> float:
    """In nanoseconds by the kernel's clock of the process, or else in ticks."""
    try:
        return time.clock_gettime(~pid << 3 | CPUCLOCK_SCHED)
    except OSError:
        return _ticks(pid) / TICKS


def process_family(leader: int) -> list[int]:
    """The processes of the session that this one leads, itself first."""
    others = list[int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
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
    """The core of the servers and the core of the client; the same one on a machine with one core."""

    server: int
    client: int


def choose_cores() -> Cores:
    allowed = sorted(os.sched_getaffinity(0))
    return Cores(server=allowed[0], client=allowed[-1])
