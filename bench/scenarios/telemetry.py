"""The cost of traces: the same turns with `telemetry` on and off, in CPU time of the server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.contenders import mock, ours, ours_traced
from bench.load import concurrent_turns, warm_up
from bench.measure import BenchFailure
from bench.protocols import burst, words
from bench.report import Row, at_most
from bench.servers import DRAGOMAN, Server, traced

from .runner import OURS, Bench, alternate, client_row, compared

COLUMNS = ("traced", OURS)
MOST_WAIT_SECONDS = 60.0


class Collector(BaseHTTPRequestHandler):
    """Takes spans and forgets them; `received` is set when some have come."""

    received = threading.Event()
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        if self.rfile.read(int(self.headers["Content-Length"])):
            self.received.set()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads a line for each request."""


@contextmanager
def collecting() -> Iterator[str]:
    """The address of a collector."""
    Collector.received.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        threading.Thread(target=server.serve_forever, name="collector", daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


def await_spans() -> None:
    """Wait until spans have come, while their server runs."""
    if not Collector.received.wait(MOST_WAIT_SECONDS):
        raise BenchFailure("the traced server sent no spans: it was not measured with traces on")


def measure_telemetry(bench: Bench) -> Iterator[Row]:
    """Per delta in turns of a usual length, and per turn in turns that say next to nothing."""
    turns, deltas, rounds = bench.effort.traced
    yield from _model(bench, turns, deltas, rounds)
    yield from _burst(bench, turns, deltas, rounds, "µs/delta")
    turns, rounds = bench.effort.turns
    yield from _burst(bench, turns, 1, rounds, "µs/turn")


def _model(bench: Bench, turns: int, deltas: int, rounds: int) -> Iterator[Row]:
    """Deltas as they come from a model service, which is what a gateway is for."""
    talk = words(deltas)
    bench.tell(f"telemetry: {turns} at once, {deltas} deltas each of a model service")
    with (
        collecting() as collector, Server(mock(), bench.folder, bench.cores.client) as service,
        bench.running(ours_traced(service.port, collector), ours(service.port)) as servers,
    ):
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
        await_spans()
    micros = {name: [sample.cpu_micros for sample in samples] for name, samples in found.items()}
    aim = at_most(1.05, "1.05 ×")
    yield compared("telemetry", f"{turns:,} × {deltas:,} of a model, server CPU", "µs/delta", micros, aim)


def _burst(bench: Bench, turns: int, deltas: int, rounds: int, unit: str) -> Iterator[Row]:
    """Deltas of the demo agent, which come all at once: nothing else costs so little per delta."""
    talk, label = burst(deltas), f"{turns:,} × {deltas:,}"
    bench.tell(f"telemetry: {turns} at once, {deltas} deltas each")
    with collecting() as collector, bench.running(traced(collector), DRAGOMAN) as servers:
        warm_up(servers, talk)
        found = alternate(servers, rounds, lambda server: concurrent_turns(server, turns, talk))
        await_spans()
        micros = {name: [sample.cpu_micros for sample in samples] for name, samples in found.items()}
        yield compared("telemetry", f"{label} server CPU", unit, micros)
        yield client_row("telemetry", f"{label} client busy", found)
