"""Examinations: the suite runs against a server as a process of its own, one at a time, bounded and cancellable."""

import asyncio
import os
import re
import shutil
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import orjson
from msgspec import Struct

from gateway.errors import Conflict, NotFound
from gateway.http import dumps
from gateway.ids import random_id
from gateway.logging import get_logger
from gateway.ports import Chunk, Clock, Frame

log = get_logger("dragoman.console")
ExaminationStatus = Literal["running", "passed", "failed", "cancelled", "error"]
KEPT = 20
"""How many examinations are remembered."""
MAX_SECONDS = 1800.0
"""After so many seconds an examination is ended."""
KILL_SECONDS = 5.0
MAX_LINES, MAX_LINE = 500, 2000
"""How many lines of output are kept, and how many characters of each."""
MAX_REPORT_BYTES = 64 * 1024 * 1024
USAGE_ERROR = 2
_CASE = re.compile(r"(passed|failed|not.testable|not.applicable)\s+(\S.*)")
FOLDER = "examinations"


class CaseProgress(Struct, frozen=True, kw_only=True):
    """A case that has ended; `total` is the number of cases of the last whole run, 0 if it is not known."""

    case: str
    outcome: str
    done: int
    total: int


class ShownExamination(Struct, kw_only=True):
    id: str
    dialect: str
    url: str
    status: ExaminationStatus
    started_at: float
    ended_at: float | None
    passed: int
    failed: int
    skipped: int


class OutputLine(Struct, frozen=True):
    text: str


class ExaminationEnd(Struct, frozen=True):
    status: ExaminationStatus


@dataclass(kw_only=True, eq=False)
class Examination:
    """One run of the suite; `events` has all events so far, for readers who come later."""

    id: str
    dialect: str
    url: str
    cases: str
    folder: Path
    started_at: float
    recording: bytes | None = None
    """The recording that is judged instead of a server; `url` is then its name."""
    status: ExaminationStatus = "running"
    ended_at: float | None = None
    done: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    output: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    events: list[Frame] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    process: asyncio.subprocess.Process | None = None
    task: asyncio.Task[None] | None = None
    is_cancelled: bool = False

    @property
    def shown(self) -> ShownExamination:
        others = sum(count for outcome, count in self.counts.items() if outcome not in ("passed", "failed"))
        return ShownExamination(
            id=self.id, dialect=self.dialect, url=self.url, status=self.status, started_at=self.started_at,
            ended_at=self.ended_at, passed=self.counts.get("passed", 0), failed=self.counts.get("failed", 0),
            skipped=others,
        )

    @property
    def report_file(self) -> Path:
        return self.folder / "report.json"

    @property
    def page_file(self) -> Path:
        return self.folder / "report.html"

    @property
    def recording_file(self) -> Path:
        return self.folder / "recording"

    def tell(self, name: str, data: object) -> None:
        self.events.append(Frame(b"event: %b\ndata: %b\n\n" % (name.encode(), dumps(data)), name))
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def take_line(self, line: str, total: int) -> None:
        """Take a line of the suite's output: the outcome of a case, or words."""
        line = line.rstrip()[:MAX_LINE]
        if not line:
            return
        self.output.append(line)
        case = _CASE.fullmatch(line)
        if case is None:
            if len(self.events) < 100 * MAX_LINES:
                self.tell("line", OutputLine(line))
            return
        self.done += 1
        self.counts[case[1]] = self.counts.get(case[1], 0) + 1
        self.tell("progress", CaseProgress(
            case=case[2], outcome=case[1], done=self.done, total=max(total, self.done) if total else 0))

    def report(self) -> orjson.Fragment | None:
        """The report as JSON, if there is one."""
        try:
            if self.report_file.stat().st_size > MAX_REPORT_BYTES:
                return None
            return orjson.Fragment(self.report_file.read_bytes())
        except OSError:
            return None


class ExaminationSubscription:
    """The messages of an examination, from its start, as a subscription."""

    cut_at: int | None = None
    is_draining = False

    def __init__(self, examination: Examination) -> None:
        self._examination = examination
        self._had = 0

    async def chunks(self) -> Sequence[Chunk]:
        one = self._examination
        while self._had == len(one.events):
            if one.status != "running":
                return ()
            await one.changed.wait()
        fresh, self._had = one.events[self._had:], len(one.events)
        return (Chunk(0, tuple(fresh), False),)

    def cut(self) -> None:
        """The client did not read: nothing is held for it."""

    def close(self) -> None:
        """Nothing is open."""


class Examiner:
    """Runs one examination at a time, and remembers the last ones."""

    def __init__(
        self, data: Path, clock: Clock, command: Sequence[str] = (sys.executable, "-m", "conformance"),
    ) -> None:
        self._folder, self._clock, self._command = data / FOLDER, clock, tuple(command)
        self._known: dict[str, Examination] = {}
        self._totals: dict[tuple[str, str], int] = {}

    @property
    def known(self) -> list[Examination]:
        """The examinations, newest first."""
        return list(reversed(self._known.values()))

    def get(self, examination_id: str) -> Examination:
        found = self._known.get(examination_id)
        if found is None:
            raise NotFound(f"there is no examination '{examination_id[:80]}'")
        return found

    def start(
        self, dialect: str, url: str, key: str | None, cases: str = "", recording: bytes | None = None,
    ) -> Examination:
        """Start an examination of a server, or of a recording; `Conflict` while another one runs."""
        if any(one.status == "running" for one in self._known.values()):
            raise Conflict("an examination runs already: wait for its end, or cancel it")
        made = random_id("exam")
        one = self._known[made] = Examination(
            id=made, dialect=dialect, url=url, cases=cases, folder=self._folder / made, started_at=self._clock(),
            recording=recording)
        one.task = asyncio.get_running_loop().create_task(self._run(one, key), name=f"examination {made}")
        return one

    async def cancel(self, examination_id: str) -> None:
        """Cancel an examination that runs; forget one that has ended."""
        one = self.get(examination_id)
        if one.task is None or one.status != "running":
            del self._known[one.id]
            await asyncio.to_thread(shutil.rmtree, one.folder, ignore_errors=True)
            return
        one.is_cancelled = True
        one.task.cancel()
        with suppress(asyncio.CancelledError):
            await one.task

    async def close(self) -> None:
        """Cancel the examination that runs."""
        for one in self.known:
            if one.status == "running":
                await self.cancel(one.id)

    # -- one run --------------------------------------------------------------------------------------------------

    async def _run(self, one: Examination, key: str | None) -> None:
        status: ExaminationStatus = "error"
        try:
            await asyncio.to_thread(self._make_room, one)
            async with asyncio.timeout(MAX_SECONDS):
                code = await self._executed(one, key)
            status = "passed" if code == 0 else "error" if code == USAGE_ERROR or not one.done else "failed"
            if status != "error":
                self._totals[one.dialect, one.cases] = one.done
        except TimeoutError:
            one.take_line(f"the examination took more than {MAX_SECONDS:g} seconds and was ended", 0)
        except OSError as error:
            log.warning("examination_failed", examination=one.id, reason=str(error))
            one.take_line(f"the examination could not be started: {error.strerror or error}", 0)
        finally:
            await asyncio.shield(self._stop(one))
            one.status, one.ended_at = "cancelled" if one.is_cancelled else status, self._clock()
            one.tell("end", ExaminationEnd(one.status))

    async def _executed(self, one: Examination, key: str | None) -> int:
        """Run the suite to its end and return its exit code; the key is in its environment, not in its arguments."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        words = [
            *self._command, "--report", f"json={one.report_file}", "--report", f"html={one.page_file}",
            *(["--only", one.cases] if one.cases else []),
            *(["--", one.dialect, one.url] if one.recording is None else
              ["--transcript", str(one.recording_file), "--", one.dialect]),
        ]
        one.process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env={**own, "CONFORM_KEY": key} if key else own, limit=1024 * 1024,
        )
        assert one.process.stdout is not None
        while True:
            try:
                line = await one.process.stdout.readline()
            except ValueError:  # a line without an end is left out
                continue
            if not line:
                return await one.process.wait()
            one.take_line(line.decode(errors="replace"), self._totals.get((one.dialect, one.cases), 0))

    async def _stop(self, one: Examination) -> None:
        process = one.process
        if process is None or process.returncode is not None:
            return
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(KILL_SECONDS):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _make_room(self, one: Examination) -> None:
        """Make the folder of the examination; forget the oldest ones, and what an earlier process has left."""
        for oldest in list(self._known)[:-KEPT]:
            del self._known[oldest]
        if self._folder.is_dir():
            for left in self._folder.iterdir():
                if left.name not in self._known:
                    shutil.rmtree(left, ignore_errors=True)
        one.folder.mkdir(parents=True, mode=0o700)
        if one.recording is not None:
            one.recording_file.write_bytes(one.recording)
            one.recording = b""
