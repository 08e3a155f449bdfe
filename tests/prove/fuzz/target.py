"""The server that is fuzzed, in a process of its own, and what can be seen of it from outside."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from aiohttp import web

from bench.client import fetch
from bench.measure import BenchFailure, rss_bytes
from bench.servers import READYZ, ROOT, free_port
from bench.soak import slope
from gateway.app import Gateway
from gateway.composition import load_components
from gateway.config import load_config
from tests.support.dialect_parts import quick_settings

HANG = 120.0
"""Only a server that hangs takes so many seconds to start or to stop."""
MIB = 2**20
SLACK_BYTES, SLACK_SHARE = 8 * MIB, 0.05
STALL = "0.5"
"""Seconds that the loop may be late; a bucket of the server's own measurement."""
SETTINGS = """\
port: {port}
data: {data}
dialects: {dialects}
agents: {{demo: {{backend: demo}}}}
limits: {{turn_seconds: 5, ask_seconds: 5, send_seconds: 1, header_seconds: 5,
  max_sessions: 500, cached_sessions: 500, max_resources: 500}}
uploads: {{max_bytes: 100000}}
logging: {{format: json, level: info}}
"""
LATE = re.compile(r'dragoman_loop_lag_seconds_(?:bucket\{le="([^"]+)"\}|count) (\d+)')


class Target:
    """A server, its journal, and its memory."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._settings = folder / "fuzz.yaml"
        self._settings.write_text(SETTINGS.format(
            port=self.port, data=folder / "data", dialects=json.dumps(quick_settings())))
        self._journal = folder / "journal.jsonl"
        self._read = 0
        with self._journal.open("w") as told:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from gateway.cli import main; main()", "serve", "--config", self._settings],
                cwd=ROOT, stdout=subprocess.DEVNULL, stderr=told, start_new_session=True,
            )
        self._await_ready()

    def application(self) -> web.Application:
        """The same application here, to be looked at: which routes it has, and what their handlers read."""
        return Gateway(load_components(load_config(self._settings))).web

    def _await_ready(self) -> None:
        end = time.monotonic() + HANG
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise BenchFailure(f"the server ended with code {self.process.returncode}: {self._journal.read_text()}")
            try:
                if fetch(self.port, READYZ).status == 200:
                    return
            except (OSError, BenchFailure):
                time.sleep(0.05)
        raise BenchFailure(f"the server was not ready after {HANG:.0f} seconds")

    def complaints(self) -> list[str]:
        """Lines of the journal since the last look that tell of a mistake of the server."""
        with self._journal.open() as journal:
            journal.seek(self._read)
            lines = journal.readlines()
            self._read = journal.tell()
        return complaints_of(lines)

    @property
    def journal_bytes(self) -> int:
        return self._journal.stat().st_size

    @property
    def rss(self) -> int:
        if self.process.poll() is not None:
            raise BenchFailure(f"the server ended with code {self.process.returncode}")
        return rss_bytes(self.process.pid)

    def late(self) -> int:
        """How often the loop was later than it may be."""
        page = fetch(self.port, b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").body().decode()
        found = {bucket or "count": int(count) for bucket, count in LATE.findall(page)}
        return found["count"] - found[STALL]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(HANG)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def complaints_of(lines: Iterable[str]) -> list[str]:
    """Lines of level error, with a traceback, or that are none of the journal's at all."""
    return [line.rstrip() for line in lines if "Traceback" in line or '"level":"error"' in line or line[:1] != "{"]


def growth(places: Sequence[float], sizes: Sequence[float]) -> tuple[float, float]:
    """By how much the memory rose in the second half, and by how much it may."""
    half = [at for at, place in enumerate(places) if place >= places[-1] / 2]
    xs, ys = [places[at] for at in half], [sizes[at] for at in half]
    return slope(xs, ys) * (xs[-1] - xs[0]), SLACK_BYTES + SLACK_SHARE * sum(ys) / len(ys)
