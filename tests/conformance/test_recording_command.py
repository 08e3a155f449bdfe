"""`dragoman record` and `dragoman conform --transcript`, as somebody types them."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import orjson
import pytest
from typer import Typer
from typer.testing import CliRunner, Result

from conformance.command import conform
from conformance.faults.aap.server import AapServer
from conformance.kit.verdict import Report
from conformance.recording.command import record

KEY = "the-key-of-the-examiners"
RecordRun = Callable[..., Awaitable[tuple[Path, Report]]]


def run(function: Callable[..., None], *words: str) -> Result:
    app = Typer()
    app.command()(function)
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nova", "http://h"], "there is no dialect 'nova'"),
        (["aap", "localhost:8080"], "is not an http or https address"),
        (["aap", "http://[h"], "'http://[h' is not an http or https address"),
        (["aap", "http://h:99999"], "'http://h:99999' is not an http or https address"),
        (["aap", "http://h", "--listen", "8099"], "say HOST:PORT"),
        (["aap", "http://h", "--listen", "h:port"], "say HOST:PORT"),
    ],
)
def test_wrong_words_are_explained(tmp_path: Path, words: list[str], said: str) -> None:
    result = run(record, *words, "--out", str(tmp_path / "a.jsonl"))
    assert (result.exit_code, said in result.output) == (2, True)
    assert not (tmp_path / "a.jsonl").exists()


def test_a_file_is_not_overwritten_unasked(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("mine", encoding="utf-8")
    result = run(record, "aap", "http://h", "--out", str(tmp_path / "a.jsonl"))
    assert (result.exit_code, "add --overwrite" in result.output) == (2, True)
    assert (tmp_path / "a.jsonl").read_text(encoding="utf-8") == "mine"


def test_a_folder_that_is_missing_is_made_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "build" / "traffic"
    with socket.socket() as taken:  # so that it ends by itself
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = ["--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--overwrite"]
        first, second = (run(record, "aap", "http://h", "--out", str(folder / "a.jsonl"), *words) for _ in range(2))
    assert f"created the folder {folder}\n" in first.stderr and "created the folder" not in second.output
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "deep"):
        result = run(record, "aap", "http://h", "--out", str(folder / "a.jsonl"))
        assert result.exit_code == 2
        assert f"the folder {folder} cannot be created: " in result.stderr and "--out takes another" in result.stderr


def test_a_place_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run(record, "aap", "http://h", "--out", str(tmp_path / "a.jsonl"), "--listen", place)
    assert (result.exit_code, f"cannot listen at {place}" in result.output) == (2, True)


async def _get(address: str) -> int:
    headers = {"Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession() as session, session.get(f"{address}/meta", headers=headers) as answer:
        await answer.read()
        return answer.status


def test_a_recording_ends_cleanly_and_can_be_judged(
    tmp_path: Path, in_background: Callable[[AapServer], str]
) -> None:
    url, path = in_background(AapServer(key=KEY)), tmp_path / "a.jsonl"
    command = [sys.executable, "-m", "conformance", "record", "aap", url, "--out", str(path), "--listen", "127.0.0.1:0"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        address = first.rpartition(" ")[2].strip()
        assert first.startswith(f"recording {url} - point the client to http://127.0.0.1:")
        assert asyncio.run(_get(address)) == 200
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait(300) == 0
    assert "1 exchanges, 0 events and frames" in rest
    assert f"judge it with: dragoman conform aap --transcript {path}" in rest
    assert KEY not in path.read_text(encoding="utf-8")
    assert orjson.loads(path.read_bytes().splitlines()[-1])["type"] == "stopped"
    wanted = ["--only", "AAP-META-01", "--report", str(tmp_path / "r.json")]
    judged = run(conform, "aap", "--transcript", str(path), *wanted)
    assert judged.exit_code == 0
    assert orjson.loads((tmp_path / "r.json").read_bytes())["verdict"] == "conforms"


async def test_a_transcript_is_judged_with_every_report(record_run: RecordRun, tmp_path: Path) -> None:
    path, _ = await record_run("aap", AapServer(key=KEY), "AAP-META-01", "AAP-SSE-01")
    kinds = {"json": "r.json", "junit": "r.xml", "html": "r.html", "markdown": "r.md"}
    reports = [word for kind, name in kinds.items() for word in ("--report", f"{kind}={tmp_path / name}")]
    result = await asyncio.to_thread(run, conform, "aap", "--transcript", str(path), *reports)
    assert result.exit_code == 3
    assert "incomplete" in result.output
    for name in kinds.values():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "AAP-TURN-04" in text and "no evidence" in text
    told = orjson.loads((tmp_path / "r.json").read_bytes())
    outcomes = {item["id"]: item["outcome"] for item in told["requirements"]}
    assert (outcomes["AAP-META-01"], outcomes["AAP-TURN-04"]) == ("passed", "not testable")
    assert told["url"] == str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "the file is empty"), ("hello", "not JSON"), ('{"type": "recording", "version": 9}', "version 9")],
)
def test_an_unusable_file_is_a_2(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8")
    result = run(conform, "aap", "--transcript", str(path))
    assert (result.exit_code, said in result.output) == (2, True)


def test_neither_an_address_nor_a_file_is_a_2() -> None:
    result = run(conform, "aap")
    assert (result.exit_code, "say where the server is" in result.output) == (2, True)
