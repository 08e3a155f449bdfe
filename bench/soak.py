"""`python -m bench.soak`: a real server under mixed load for minutes, and whether its memory grows."""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import aiohttp

from adapters import known_dialects

from .client import fetch
from .dialects import find_visits, unvisited
from .measure import BenchFailure, rss_bytes
from .servers import READYZ, ROOT, free_port
from .soak_clients import SoakClients, SoakCounts, idle_sessions, repeat_visits

MIB = 2**20
HANG_SECONDS = 120.0
"""Only a server that hangs takes so many seconds to start or to stop."""
SAMPLE_SECONDS = 2.0
"""Seconds between two looks at the server."""
WARM, IDLE = 20, 180
"""Sessions that are created first: for warm-up, and to measure an idle session; all of them stay in memory."""
SLACK_BYTES, SLACK_SHARE = 8 * MIB, 0.05
SETTINGS = """\
port: {port}
data: {data}
dialects: {dialects}
agents: {{demo: {{backend: demo}}}}
limits: {{send_seconds: 3, cached_sessions: 200}}
logging: {{level: warning}}
"""
EPILOG = """\
The rule: a straight line is fitted through the resident memory of the second half. If it rises over that half by more
than 8 MiB and 5% of the memory, the server keeps growing, and the exit code is 1; so it is if a client was refused, or
waited for an end that did not come. Sessions at hand are bounded (200 here), so that the first half is time enough to
come to rest.
"""


@dataclass(frozen=True)
class Sample:
    """The server at one moment."""

    seconds: float
    turns: int
    rss: int
    files: int
    threads: int
    tasks: int
    log_bytes: int


@dataclass(frozen=True)
class Verdict:
    """The growth of memory in the second half, and its limit."""

    rise: float
    allowed: float
    per_thousand_turns: float

    @property
    def grows(self) -> bool:
        return self.rise > self.allowed


def slope(places: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the straight line that fits best."""
    middle, mean = fmean(places), fmean(values)
    spread = sum((place - middle) ** 2 for place in places)
    return sum((p - middle) * (v - mean) for p, v in zip(places, values, strict=True)) / spread if spread else 0.0


def judge(samples: Sequence[Sample]) -> Verdict:
    half = [sample for sample in samples if sample.seconds >= samples[-1].seconds / 2]
    rss = [float(sample.rss) for sample in half]
    seconds = [sample.seconds for sample in half]
    rise = slope(seconds, rss) * (seconds[-1] - seconds[0])
    per_turn = slope([float(sample.turns) for sample in half], rss)
    return Verdict(rise, SLACK_BYTES + SLACK_SHARE * fmean(rss), 1000 * per_turn)


class SoakServer:
    """The server process, and what can be measured from outside."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.data = folder / "data"
        settings = folder / "soak.yaml"
        settings.write_text(SETTINGS.format(
            port=self.port, data=self.data, dialects=json.dumps({name: {} for name in known_dialects()})))
        start = "from gateway.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", start, "serve", "--config", str(settings)], cwd=ROOT, stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._await_ready()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _await_ready(self) -> None:
        end = time.monotonic() + HANG_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise BenchFailure(f"the server ended with code {self.process.returncode}")
            try:
                if fetch(self.port, READYZ).status == 200:
                    return
            except (OSError, BenchFailure):
                time.sleep(0.05)
        raise BenchFailure(f"the server was not ready after {HANG_SECONDS:.0f} seconds")

    async def look(self, http: aiohttp.ClientSession, since: float, turns: int) -> Sample:
        if self.process.poll() is not None:
            raise BenchFailure(f"the server ended with code {self.process.returncode}")
        pid, folder = self.process.pid, Path(f"/proc/{self.process.pid}")
        async with http.get(f"{self.address}/metrics") as answer:
            page = await answer.text()
        return Sample(
            time.monotonic() - since, turns, rss_bytes(pid), _count(folder / "fd"),
            _count(folder / "task"), int(_figure(page, "dragoman_tasks")),
            sum(file.stat().st_size for file in self.data.glob("dragoman.db*")),
        )

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(HANG_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _figure(page: str, name: str) -> float:
    return next((float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} ")), 0.0)


async def soak(server: SoakServer, seconds: float) -> tuple[list[Sample], SoakCounts, float]:
    """The samples, what was done, and the memory of an idle session."""
    tally, over, samples = SoakCounts(), asyncio.Event(), list[Sample]()
    timeout = aiohttp.ClientTimeout(total=None)  # every visit has a timeout
    async with aiohttp.ClientSession(timeout=timeout) as http:
        crowd = SoakClients(server.address, http, tally)
        await idle_sessions(crowd, WARM)
        before = rss_bytes(server.process.pid)
        await idle_sessions(crowd, IDLE)
        idle = (rss_bytes(server.process.pid) - before) / IDLE
        begun = time.monotonic()
        work = [asyncio.create_task(repeat_visits(crowd, visit.pay, over))
                for visit in find_visits().values() for _ in range(visit.workers)]
        try:
            while time.monotonic() - begun < seconds:
                done, _ = await asyncio.wait(work, timeout=SAMPLE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                for task in done:
                    task.result()
                samples.append(await server.look(http, begun, tally.turns))
                _tell(samples[-1], len(samples))
            over.set()
            await asyncio.wait(work, return_when=asyncio.FIRST_EXCEPTION)  # a visit that takes too long fails
        finally:
            for task in work:
                task.cancel()
            ends = await asyncio.gather(*work, return_exceptions=True)
        if broken := next((end for end in ends if isinstance(end, BenchFailure)), None):
            raise broken
        samples.append(await server.look(http, begun, tally.turns))
    return samples, tally, idle


def _tell(sample: Sample, number: int) -> None:
    if number % 5 == 1:
        print(
            f"{sample.seconds:6.0f} s  {sample.turns:7d} turns  {sample.rss / MIB:6.1f} MiB  {sample.files:4d} files  "
            f"{sample.threads:3d} threads  {sample.tasks:4d} tasks  log {sample.log_bytes / MIB:6.1f} MiB", flush=True,
        )


def report(samples: Sequence[Sample], tally: SoakCounts, idle: float, verdict: Verdict) -> str:
    first, last = samples[0], samples[-1]
    return "\n".join((
        f"turns            {tally.turns} ({', '.join(f'{name} {n}' for name, n in sorted(tally.by_dialect.items()))})",
        f"beside           {tally.asks} asks, {tally.interrupts} interrupts, {tally.returns} returns, "
        f"{tally.hangs} clients that took nothing",
        f"memory           {first.rss / MIB:.1f} MiB at first, {last.rss / MIB:.1f} MiB at last",
        f"per 1,000 turns  {verdict.per_thousand_turns / 1024:+.1f} KiB in the second half",
        f"per idle session {idle / 1024:.1f} KiB",
        f"open files       {first.files} at first, {last.files} at last",
        f"tasks            {first.tasks} at first, {last.tasks} at last",
        f"log              {last.log_bytes / MIB:.1f} MiB, {last.log_bytes / max(1, last.turns):.0f} bytes a turn",
        f"second half      {verdict.rise / MIB:+.1f} MiB, allowed {verdict.allowed / MIB:.1f} MiB: "
        + ("it keeps growing" if verdict.grows else "it does not keep growing"),
    ))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long; 10 unless said")
    seconds = 60 * parser.parse_args(arguments).minutes
    for name in unvisited():
        print(f"{name} is left out: there is no bench/dialects/{name}.py")
    with TemporaryDirectory(prefix="dragoman-soak-") as folder:
        server = SoakServer(Path(folder))
        try:
            samples, tally, idle = asyncio.run(soak(server, seconds))
        except BenchFailure as broken:
            print(f"soak: {broken}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
        finally:
            code = server.stop()
    verdict = judge(samples)
    print(report(samples, tally, idle, verdict))
    if code:
        print(f"soak: the server ended with code {code}", file=sys.stderr)
    return 1 if verdict.grows or code else 0


if __name__ == "__main__":
    sys.exit(main())
