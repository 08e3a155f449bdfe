"""Examinations from the console: a stand-in for the suite's process tells its cases, is followed, and is cancelled."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.console.examination import Examination, ExaminationSubscription, Examiner
from gateway.errors import Conflict, NotFound
from tests.support.console_client import ConsoleClient

SUITE = """
import os, sys, time
words = sys.argv[1:]
files = dict(word.split("=", 1) for word in words if word.startswith(("json=", "html=")))
print("passed       test_one", flush=True)
print("failed       test_two[a b]", flush=True)
print("not testable test_three", flush=True)
print("key", os.environ.get("CONFORM_KEY", "none"), words[words.index("--") + 1:], flush=True)
if "--transcript" in words:
    assert os.path.exists(words[words.index("--transcript") + 1])
if words[-1].endswith("/wait"):
    time.sleep(600)
open(files["json"], "w").write('{"verdict": "fails"}')
open(files["html"], "w").write("<html>report</html>")
sys.exit(int(words[-1].rpartition("/")[2]))
"""


def examining(folder: Path, test: Callable[[Examiner], Awaitable[None]]) -> None:
    """Run a test in the loop of the system: processes cannot join a simulated one."""
    async def run() -> None:
        (folder / "suite.py").write_text(SUITE)
        examiner = Examiner(folder, lambda: 1.0, (sys.executable, "-S", str(folder / "suite.py")))
        try:
            async with asyncio.timeout(60):
                await test(examiner)
        finally:
            await examiner.close()

    asyncio.run(run())


async def followed(one: Examination) -> list[bytes]:
    subscription, found = ExaminationSubscription(one), list[bytes]()
    while chunks := await subscription.chunks():
        found += [frame.body for chunk in chunks for frame in chunk.frames]
    return found


def test_the_cases_are_told_as_they_end(tmp_path: Path) -> None:
    async def test(examiner: Examiner) -> None:
        one = examiner.start("nova", "http://x/1", "secret-key")
        told = await followed(one)
        assert (one.status, one.shown.passed, one.shown.failed, one.shown.skipped) == ("failed", 1, 1, 1)
        progress = [line for line in told if line.startswith(b"event: progress")]
        assert b'"case":"test_two[a b]","outcome":"failed","done":2,"total":0' in progress[1]
        assert told[-1] == b'event: end\ndata: {"status":"failed"}\n\n'
        assert await followed(one) == told, "who comes later is told the same"
        assert one.report_file.read_text() == '{"verdict": "fails"}'
        assert "key secret-key ['nova', 'http://x/1']" in one.output
        again = examiner.start("nova", "http://x/0", None)
        assert b'"done":1,"total":3' in (await followed(again))[0], "the last run had three cases"
        assert (again.status, examiner.known) == ("passed", [again, one])
        await examiner.cancel(one.id)
        assert examiner.known == [again] and not one.folder.exists()

    examining(tmp_path, test)


def test_one_runs_at_a_time_and_can_be_cancelled(tmp_path: Path) -> None:
    async def test(examiner: Examiner) -> None:
        one = examiner.start("nova", "http://x/wait", None)
        subscription = ExaminationSubscription(one)
        await subscription.chunks()
        with pytest.raises(Conflict, match="runs already"):
            examiner.start("nova", "http://x/0", None)
        await examiner.cancel(one.id)
        assert one.status == "cancelled"
        assert one.process is not None and one.process.returncode is not None
        assert b'"cancelled"' in (await followed(one))[-1]
        with pytest.raises(NotFound):
            examiner.get("exam_none")

    examining(tmp_path, test)


def test_a_server_that_stops_ends_the_examination(tmp_path: Path) -> None:
    async def test(examiner: Examiner) -> None:
        one = examiner.start("nova", "http://x/wait", None)
        await ExaminationSubscription(one).chunks()
        await examiner.close()
        assert one.status == "cancelled"

    examining(tmp_path, test)


def test_a_suite_that_cannot_begin_is_an_error(tmp_path: Path) -> None:
    async def test(examiner: Examiner) -> None:
        one = examiner.start("nova", "http://x/2", None)
        await followed(one)
        assert one.status == "error"
        gone = Examiner(tmp_path, lambda: 1.0, (str(tmp_path / "nothing"),))
        other = gone.start("nova", "http://x/0", None)
        await followed(other)
        assert (other.status, other.report()) == ("error", None)
        assert "could not be started" in other.output[-1]

    examining(tmp_path, test)


def test_a_recording_is_judged(tmp_path: Path) -> None:
    async def test(examiner: Examiner) -> None:
        one = examiner.start("1", "talk.jsonl", None, recording=b"{}")
        await followed(one)
        assert one.status == "failed"
        assert one.recording_file.read_bytes() == b"{}"
        assert one.report() is not None

    examining(tmp_path, test)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"nothing", b'{"dialect": 5}', b'{"dialect": "../x"}'])
async def test_what_is_no_recording_is_refused(console: ConsoleClient, content: bytes) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    error = await console.error("POST", "/reports?name=x", 400, data=content, headers=headers)
    assert "no recording" in error["message"]


@pytest.mark.parametrize("body", [
    {}, {"dialect": "--help"}, {"dialect": "nothing"}, {"dialect": "aap", "url": "file:///etc/passwd"},
    {"dialect": "aap", "url": "--key"}, {"dialect": "aap", "cases": "$(x)"}, {"dialect": "aap", "key": 5},
])
async def test_a_wrong_examination_is_refused(console: ConsoleClient, body: Any) -> None:
    assert (await console.error("POST", "/examinations", 400, body))["code"] == "invalid"
    assert (await console.get("/examinations")) == {"examinations": []}


@pytest.mark.parametrize("path", ["", "/report.html", "/stream"])
async def test_an_examination_that_is_none_is_not_found(console: ConsoleClient, path: str) -> None:
    await console.error("GET", f"/examinations/exam_none{path}", 404)
    await console.error("DELETE", "/examinations/exam_none", 404)


async def test_the_report_of_an_examination_is_read(console: ConsoleClient, tmp_path: Path) -> None:
    examiner = console.served.gateway.console.examiner
    one = Examination(id="exam_1", dialect="nova", url="http://x", cases="", folder=tmp_path, started_at=1.0,
                      status="failed", ended_at=2.0)
    examiner._known[one.id] = one
    one.take_line("failed       test_x", 0)
    shown = await console.get("/examinations/exam_1")
    assert (shown["report"], shown["output"], shown["failed"]) == (None, "failed       test_x", 1)
    await console.error("GET", "/examinations/exam_1/report.html", 404)
    one.report_file.write_text('{"verdict": "fails"}')
    one.page_file.write_text("<script>alert(1)</script>")
    assert (await console.get("/examinations/exam_1"))["report"] == {"verdict": "fails"}
    async with console.asks("GET", "/examinations/exam_1/report.html") as answer:
        assert answer.content_type == "application/octet-stream"
        assert answer.headers["Content-Disposition"].startswith("attachment")
    async with console.events("/examinations/exam_1/stream") as events:
        assert [(event.name, event.data["case"]) async for event in events] == [("progress", "test_x")]
