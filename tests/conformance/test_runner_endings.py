"""However a server behaves, and whatever its dialect, the examination ends with a report that says why."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web

from conformance.kit.runner import Runner
from conformance.kit.suite import Target, dialects, load_suite
from conformance.kit.verdict import CaseResult, Outcome, Report, Verdict
from tests.support.conformance.examinations import KEY, PATIENT, SERVERS

ROOT = Path(__file__).parents[2]
HANG = 600
"""Seconds that only an examination that hangs would need."""
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def _never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def _only_heads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        await reader.read()
    writer.close()


async def _random_bytes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(random.Random(7).randbytes(2000))
    writer.close()


async def _random_bodies(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n")
    writer.write(random.Random(7).randbytes(500))
    writer.close()


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _cuts_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"version"')
    writer.close()


async def _drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    with suppress(ConnectionError):
        while True:
            writer.write(b": ")
            await writer.drain()
            await asyncio.sleep(0.05)
    writer.close()


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[str]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def examined(dialect: str, url: str, within: float, at_once: int = 16) -> Report:
    """The whole suite, or an error after a while."""
    suite = load_suite(dialect)
    runner = Runner(suite, Target(url, "a-key", within), suite.read_profile(), at_once)
    async with asyncio.timeout(HANG):
        return await runner.run(suite.catalogue.requirements)


def told(report: Report) -> list[CaseResult]:
    """The results, every one of which has to give its reason."""
    assert len(report.results) == len(load_suite(report.dialect).cases)
    assert [item.name for item in report.results if item.outcome is not Outcome.PASSED and not item.remark] == []
    assert [item.remark for item in report.results if "stumbled" in item.remark] == []
    return list(report.results)


SILENT = [_never_answers, _only_heads, _random_bytes, _hangs_up]


@pytest.mark.parametrize("dialect", dialects())
@pytest.mark.parametrize("talk", SILENT, ids=lambda talk: talk.__name__)
async def test_a_server_without_answers_is_given_up(dialect: str, talk: Talk) -> None:
    async with listening(talk) as url:
        report = await examined(dialect, url, within=0.2)
    assert report.verdict is Verdict.FAILS
    assert not any(item.outcome is Outcome.PASSED for item in told(report))
    assert any("without an answer" in item.remark for item in report.results)


async def test_one_case_is_enough_to_fail_a_silent_server() -> None:
    """What is asked is a MUST, and what the silence is charged to, the way to a session, is only a SHOULD."""
    suite = load_suite("blade")
    async with listening(_never_answers) as url:
        runner = Runner(suite, Target(url, "a-key", 0.2), suite.read_profile())
        report = await runner.run([item for item in suite.catalogue.requirements if item.id == "BL-SESS-01"])
    assert [finding.because for finding in report.findings] == [("BL-REST-01",)]
    assert report.verdict is Verdict.FAILS


@pytest.mark.parametrize("dialect", dialects())
@pytest.mark.parametrize("talk", [_random_bodies, _cuts_answers, _drips], ids=lambda talk: talk.__name__)
async def test_a_server_of_garbage_is_examined_to_the_end(dialect: str, talk: Talk) -> None:
    async with listening(talk) as url:
        report = await examined(dialect, url, within=0.1, at_once=64)
    assert report.verdict in (Verdict.FAILS, Verdict.INCOMPLETE)
    assert [item.name for item in told(report) if item.outcome is Outcome.PASSED] == []


SERVER = """
import asyncio
from conformance.faults.local_server import served
from conformance.faults.aap.server import AapServer

async def main():
    async with served(AapServer()) as url:
        print(url, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def mortal(dialect: str) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """The address of a right server, and what kills it: nobody listens any more, and all connections break."""
    server = SERVERS[dialect]()
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    assert runner.server is not None
    listener = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)

    def kill() -> None:
        listener.close()
        for connection in runner.server.connections:
            if connection.transport is not None:
                connection.transport.abort()

    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{server.mount}", kill
    finally:
        listener.close()
        await runner.cleanup()


async def examined_until_killed(dialect: str, url: str, kill: Callable[[], None], key: str | None) -> Report:
    """An examination of a server that is killed after ten cases."""
    heard: list[CaseResult] = []

    def note(result: CaseResult) -> None:
        heard.append(result)
        if len(heard) == 10:
            kill()

    suite = load_suite(dialect)
    runner = Runner(suite, Target(url, key, PATIENT), suite.read_profile())
    return await runner.run(suite.catalogue.requirements, note)


def tells_of_the_death(report: Report) -> None:
    assert report.verdict is Verdict.FAILS
    assert any(item.outcome is Outcome.PASSED for item in told(report))
    remarks = [item.remark for finding in report.findings for item in finding.grave]
    assert any("Connect" in remark or "disconnected" in remark for remark in remarks)
    assert any("without an answer" in item.remark for item in report.results)


@pytest.mark.parametrize("dialect", dialects())
async def test_a_server_that_dies_midway_is_reported(dialect: str) -> None:
    async with mortal(dialect) as (url, kill):
        tells_of_the_death(await examined_until_killed(dialect, url, kill, KEY))


async def test_a_process_that_is_killed_midway_is_reported() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        url = (await asyncio.wait_for(process.stdout.readline(), HANG)).decode().strip()
        tells_of_the_death(await examined_until_killed("aap", url, process.kill, None))
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait_for(process.wait(), HANG)
