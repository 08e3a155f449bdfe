"""One of several processes that serve one port: what its parent gave it, and the metrics of all of them."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

ENVIRONMENT = "_DRAGOMAN_WORKER"
METRICS_SECONDS = 2.0
"""How long the metrics of another worker are waited for."""


@dataclass(frozen=True)
class Assignment:
    """The environment variable of a worker: its number, two inherited sockets, and the folder of all workers."""

    number: int
    door: int
    link: int
    folder: str

    def environment(self) -> dict[str, str]:
        return {ENVIRONMENT: orjson.dumps(asdict(self)).decode()}


class Worker:
    """The place of this process among the workers of its parent."""

    def __init__(self, assignment: Assignment) -> None:
        self.number = assignment.number
        self.folder = Path(assignment.folder)
        self.door = socket.socket(fileno=assignment.door)
        """The socket to accept connections from; the parent keeps it open, so that no waiting connection is lost."""
        self._link = socket.socket(fileno=assignment.link)

    @classmethod
    def of_this_process(cls) -> "Worker | None":
        """The worker that this process was started as; programs that it starts do not inherit that."""
        assigned = os.environ.pop(ENVIRONMENT, None)
        return cls(Assignment(**orjson.loads(assigned))) if assigned else None

    def stop_with_parent(self) -> None:
        """Stop like after SIGTERM if the parent is gone: nobody would restart or replace this process."""
        loop = asyncio.get_running_loop()
        self._link.setblocking(False)

        def read() -> None:
            try:
                is_open = bool(self._link.recv(1024))
            except BlockingIOError:
                return
            except OSError:
                is_open = False
            if not is_open:
                loop.remove_reader(self._link)
                os.kill(os.getpid(), signal.SIGTERM)

        loop.add_reader(self._link, read)

    def report_ready(self, lines: Sequence[str]) -> None:
        """Tell the parent that this worker serves, and what it would print."""
        self._link.sendall(orjson.dumps(list(lines)) + b"\n")


class WorkerMetrics:
    """The metrics of all workers: each offers its own on a Unix socket, and the worker that is asked reads all."""

    def __init__(self, worker: Worker) -> None:
        self._number, self._folder = worker.number, worker.folder
        self._server: asyncio.Server | None = None

    async def start(self, render: Callable[[], bytes]) -> None:
        """Offer the metrics of this worker; a worker that takes the place of another takes over its name."""
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(render())
            writer.close()

        place, new = self._folder / f"{self._number}.metrics", self._folder / f"{os.getpid()}.new"
        offered = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        offered.bind(str(new))
        new.rename(place)
        self._server = await asyncio.start_unix_server(answer, sock=offered)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def render_all(self) -> bytes:
        """The metrics of every worker that answers in the text format of Prometheus, with the label `worker`."""
        places = sorted(self._folder.glob("*.metrics"), key=lambda place: int(place.stem))
        texts = await asyncio.gather(*map(_read, places))
        registry = CollectorRegistry()
        registry.register(_Labelled({place.stem: text for place, text in zip(places, texts, strict=True) if text}))
        return generate_latest(registry)


async def _read(place: Path) -> str:
    """What the worker offers there; nothing if it is gone or does not answer."""
    try:
        async with asyncio.timeout(METRICS_SECONDS):
            reader, writer = await asyncio.open_unix_connection(str(place))
            try:
                return (await reader.read()).decode()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return ""


class _Labelled(Collector):
    """Families of metrics that several workers have, joined under one name each."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for worker, text in self._texts.items():
            for family in text_string_to_metric_families(text):
                joined = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    joined.add_sample(sample.name, {**sample.labels, "worker": worker}, sample.value)
        yield from families.values()
