"""A watch over a server: when it looks, how long it pauses, and what it makes of restarts."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import typer
from aiohttp import web
from typer.testing import CliRunner

from conformance.command import conform
from conformance.faults.aap.server import AapServer
from conformance.faults.fault import load_faults
from conformance.kit import server_watch
from conformance.kit.server_probe import NoServer
from conformance.kit.server_watch import Watch
from conformance.kit.suite import load_suite
from conformance.kit.verdict import Report

REPORT = Report("moon", "Moon", "http://moon", datetime(2026, 1, 2, tzinfo=UTC), 1.5, (), ())
TITLE = load_suite("aap").catalogue.title
GONE = "the server is gone; it is examined again when it is back (Ctrl-C ends the watch)"


class Moon:
    """A server that is there or not according to a script, one letter per look, and a clock that does not wait.

    `+` is there, `-` refuses connections, `?` is something else than a server of the dialect. While it is examined it
    is looked at a few times, too: a script has enough letters for that.
    """

    def __init__(self, script: str) -> None:
        self.script = iter(script)
        self.now = next(self.script)
        self.pauses: list[float] = []
        self.said: list[str] = []
        self.examinations = 0
        self.watch = Watch(self.refusal, self.absence, self.examine, self.said.append, self.sleep)

    async def refusal(self) -> str | None:
        return "refused" if self.now == "-" else None

    async def absence(self) -> str | None:
        return {"+": None, "?": "no server of moon answers", "-": "cannot be reached"}[self.now]

    async def examine(self) -> Report:
        self.examinations += 1
        if self.now != "+":
            raise NoServer("gone meanwhile")
        return REPORT

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now = next(self.script, self.now)
        await asyncio.sleep(0)


def test_the_pauses_grow_while_the_server_is_gone_and_are_bounded() -> None:
    moon = Moon("-" * 9 + "+")
    asyncio.run(moon.watch.back())
    assert moon.pauses == [0.5, 1, 2, 4, 8, 8, 8, 8, 8]
    assert moon.said == ["the server is back"]


def test_a_server_that_is_there_is_looked_at_steadily() -> None:
    moon = Moon("++++-")
    asyncio.run(moon.watch.gone())
    assert moon.pauses == [0.5] * 4
    assert moon.said == [GONE]


def test_what_else_answers_is_said_once_and_not_examined() -> None:
    moon = Moon("--???+")
    asyncio.run(moon.watch.back())
    assert moon.said == ["no server of moon answers", "the server is back"]


def test_there_is_a_report_each_time_the_server_is_back() -> None:
    moon = Moon("++++++--++++++-++++++")
    assert list(islice(moon.watch.reports(), 3)) == [REPORT] * 3
    assert moon.examinations == 3
    assert moon.said == [GONE, "the server is back"] * 2


def test_an_examination_that_the_server_left_is_not_reported_but_made_again(caplog: pytest.LogCaptureFixture) -> None:
    moon = Moon("+-+")
    ends = []

    async def case() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("case")
            raise OSError("refused")

    async def long_examination() -> Report:
        moon.examinations += 1
        if moon.examinations == 1:
            await asyncio.wait({asyncio.create_task(case())})
        ends.append("examination")
        return REPORT

    watched = Watch(moon.refusal, moon.absence, long_examination, moon.said.append, moon.sleep)
    assert next(watched.reports()) is REPORT
    assert ends == ["case", "examination"]
    assert moon.said == [GONE, "the server is back"]
    assert caplog.records == [], "what the dropped cases ran into is told to nobody"


def test_a_server_that_is_absent_when_it_is_examined_is_waited_for() -> None:
    moon = Moon("??????+")
    assert next(moon.watch.reports()) is REPORT
    assert moon.examinations == 2
    assert moon.said == ["no server of moon answers", "the server is back"]


# -- at the command line ----------------------------------------------------------------------------------------------

class Restartable:
    """A port in another thread, at which one server after the other is served."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._runner: web.AppRunner | None = None
        self.port = 0

    @property
    def is_up(self) -> bool:
        return self._runner is not None

    def start(self, server: AapServer) -> str:
        self._wait(self._start(server))
        return f"http://127.0.0.1:{self.port}{server.mount}"

    def stop(self) -> None:
        if self._runner is not None:
            self._wait(self._runner.cleanup())
        self._runner = None

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(300)
        self._loop.close()

    async def _start(self, server: AapServer) -> None:
        self._runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]

    def _wait(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


@pytest.fixture
def place() -> Iterator[Restartable]:
    found = Restartable()
    yield found
    found.close()


def test_the_command_tells_what_changed_and_leaves_with_the_last_verdict(
    place: Restartable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, told = place.start(AapServer()), tmp_path / "report.json"
    seen = []

    async def sleep(seconds: float) -> None:
        """Restarts the server as a wrong one when it was examined, and presses Ctrl-C when that was examined."""
        await asyncio.sleep(0)
        if not place.is_up:
            place.start(load_faults("aap")["version-as-text"].server())
        elif told.exists():
            told.unlink()
            seen.append(seconds)
            if len(seen) == 2:
                raise KeyboardInterrupt
            place.stop()

    monkeypatch.setattr(server_watch, "Watch", partial(Watch, sleep=sleep))
    app = typer.Typer()
    app.command()(conform)
    words = ["aap", url, "--watch", "--only", "AAP-META-01,AAP-META-02", "--report", str(told)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1, result.output
    assert result.stderr.splitlines() == [GONE, "the server is back"]
    first, second = result.stdout.split(f"wrote the json report to {told}\n")[:2]
    assert f"conforms: {TITLE} at {url}" in first and "worse" not in first
    assert "worse: 1\n  AAP-META-01 (must): passed, then failed\n" in second
    assert "verdict: conforms, then fails (1 worse, 0 better, 0 new, 0 gone)\nfails: " in second


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["aap", "http://127.0.0.1:1/aap", "--watch"], "cannot be reached"),
        (["aap", "--watch"], "only a server can be watched"),
        (["aap", "http://127.0.0.1:1/aap", "--transcript", "a.har", "--watch"], "only a server can be watched"),
        (["aap", "127.0.0.1:1", "--watch"], "is not an http or https address"),
    ],
)
def test_what_cannot_be_watched_gives_two(words: list[str], complaint: str) -> None:
    app = typer.Typer()
    app.command()(conform)
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert complaint in result.stderr
