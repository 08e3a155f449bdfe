"""The runner: whatever the server does, there is a finished report that says why."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pytest
from aiohttp import web

from conformance.faults.aap.server import AapServer
from conformance.faults.steps import AsyncStep, replace_steps, variant
from conformance.kit.case import Case
from conformance.kit.expect import NotTestable
from conformance.kit.runner import GIVE_UP_AFTER, Runner, obstacle
from conformance.kit.suite import Suite, Target
from conformance.kit.verdict import CaseResult, Outcome, Report, Verdict

Examine = Callable[..., Awaitable[Report]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[str]:
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/aap"
    finally:
        server.close()


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def _gibberish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\x01\x02 this is not HTTP \xff\r\n\r\n")
    writer.close()


async def _web_page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    page = b"<html>Welcome!</html>"
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(page), page))
    await writer.drain()
    writer.close()


def unasked(report: Report) -> list[CaseResult]:
    return [result for result in report.results if (result.reason or "").startswith("not asked")]


def stumbled(report: Report) -> list[str]:
    return [result.remark for result in report.results if "stumbled" in result.remark]


@pytest.mark.parametrize(("talk", "word"), [(_hang, "none came"), (_gibberish, "Bad")])
async def test_a_server_that_never_answers_is_given_up(examine: Examine, aap: Suite, talk: Talk, word: str) -> None:
    async with listening(talk) as url:
        report = await examine(url, within=0.15)
    assert report.verdict is Verdict.FAILS
    assert len(report.results) == len(aap.cases)
    noticed = [result for result in report.results if result.failed]
    assert len(noticed) >= GIVE_UP_AFTER
    said = [f"{result.remark} {[item.seen for item in result.departures]}" for result in noticed]
    assert [words for words in said if word not in words] == []
    assert len(unasked(report)) >= len(aap.cases) - GIVE_UP_AFTER - 4
    assert stumbled(report) == []


async def test_a_server_of_web_pages_is_examined_to_the_end(examine: Examine, aap: Suite) -> None:
    async with listening(_web_page) as url:
        report = await examine(url, within=1.0)
    assert (report.verdict, len(report.results)) == (Verdict.FAILS, len(aap.cases))
    assert not any(result.outcome is Outcome.PASSED for result in report.results)
    assert "<html>" in next(result.remark for result in report.results)
    assert stumbled(report) == unasked(report) == []


JUNK: list[Any] = [None, 7, "x", [], {}, {"agents": [{}]}, {"agents": [{"name": "a"}], "version": 3}]


@dataclass
class Junk:
    """Answers everything with the same piece of JSON."""

    junk: Any

    async def answer(self, step: Any, request: web.Request, handler: Any) -> web.StreamResponse:
        return web.json_response(self.junk)


@pytest.mark.parametrize("junk", JUNK, ids=repr)
async def test_a_server_of_junk_makes_no_examiner_stumble(examine: Examine, junk: Any) -> None:
    server = AapServer()
    replace_steps(server, Junk(junk))
    report = await examine(server, within=1.0)
    assert report.verdict is Verdict.FAILS
    assert stumbled(report) == []


class Dying:
    """Works for a while, then cuts every connection."""

    def __init__(self) -> None:
        self.left = 60

    async def answer(self, step: AsyncStep[Any], request: web.Request, *given: Any) -> web.StreamResponse:
        self.left -= 1
        if self.left < 0 and request.transport is not None:
            request.transport.abort()
        response: web.StreamResponse = await step(request, *given)
        return response


async def test_a_server_that_dies_midway_is_reported(examine: Examine, aap: Suite) -> None:
    report = await examine(variant(AapServer, Dying)(), within=1.0)
    outcomes = {result.outcome for result in report.results}
    assert outcomes == {Outcome.PASSED, Outcome.FAILED, Outcome.NOT_TESTABLE}
    assert (report.verdict, len(report.results)) == (Verdict.FAILS, len(aap.cases))
    assert any("ServerDisconnected" in result.remark or "reset" in result.remark for result in report.results)
    assert stumbled(report) == []


class Mute:
    """Answers everything but turns."""

    async def post_turn(self, step: Any, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()


async def test_a_server_whose_turns_hang_is_still_asked_everything(examine: Examine) -> None:
    report = await examine(variant(AapServer, Mute)(), within=0.4, at_once=16)
    assert unasked(report) == []
    passed = {item.requirement.id for item in report.of(Outcome.PASSED)}
    assert {"AAP-META-01", "AAP-SESS-02", "AAP-HIST-02"} <= passed
    assert {"AAP-NONE-01", "AAP-SSE-01", "AAP-TOOL-04"} & passed == set()


class Endless:
    """Its streams send comments for ever."""

    async def answer_turn(self, step: Any, request: web.Request, turn: Any, happened: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionResetError):
            while True:
                await response.write(b": still here\n\n")
                await asyncio.sleep(0.02)
        return response


async def test_a_stream_without_end_is_ended(examine: Examine) -> None:
    report = await examine(variant(AapServer, Endless)(), "AAP-SSE-02", "AAP-SSE-09", within=0.1)
    assert [result.seen for result in report.results] == ["it had not ended by then"] * 3


def one_case(aap: Suite, check: Any) -> Suite:
    case = Case("one.case", ("AAP-META-01",), "A case.", check)
    return Suite(aap.catalogue, (case,), aap.profile_model, aap.default_profile, aap.opening)


async def _run(suite: Suite, url: str = "http://127.0.0.1:9") -> CaseResult:
    runner = Runner(suite, Target(url, "k3y-of-the-runner", 0.05), suite.read_profile())
    wanted = [item for item in suite.catalogue.requirements if item.id == "AAP-META-01"]
    return (await runner.run(wanted)).results[0]


async def test_an_examiner_that_stumbles_passes_nobody(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        raise KeyError("oops")

    result = await _run(one_case(aap, check))
    assert (result.outcome, result.reason) == (Outcome.NOT_TESTABLE, "the examiner stumbled: KeyError: 'oops'")


async def test_an_examiner_that_dawdles_is_stopped(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        await asyncio.sleep(30)

    result = await _run(one_case(aap, check))
    assert (result.outcome, result.seen) == (Outcome.FAILED, "it had not ended by then")
    assert result.seconds < 5


async def test_the_key_is_struck_out_of_reasons_too(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        raise NotTestable("the server said k3y-of-the-runner")

    assert (await _run(one_case(aap, check))).reason == "the server said [redacted]"


async def test_a_secret_returned_in_one_case_is_struck_out_of_all(aap: Suite) -> None:
    async def before(exam: Any) -> None:
        raise NotTestable("the server said given-away-1 and own-business-1")

    async def giving(exam: Any) -> None:
        exam.http.transcript.sent('{"token": "own-business-1"}')
        exam.http.transcript.received('{"token": "given-away-1"}')

    cases = tuple(Case(f"a.{check.__name__}", ("AAP-META-01",), "A case.", check) for check in (before, giving))
    result = await _run(replace(aap, cases=cases))
    assert result.reason == "the server said [redacted-2] and own-business-1"


async def test_the_values_of_the_profile_are_struck_out(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        raise NotTestable("the option was sesame-open-1")

    suite, options = one_case(aap, check), {"values": {"licence": "sesame-open-1"}}
    profile = suite.profile_model.model_validate({"options": options})
    wanted = [item for item in suite.catalogue.requirements if item.id == "AAP-META-01"]
    report = await Runner(suite, Target("http://me:pass-word-1@127.0.0.1:9", None, 0.05), profile).run(wanted)
    assert report.results[0].reason == "the option was [redacted-2]"
    assert report.url == "http://127.0.0.1:9"


async def test_the_watcher_hears_of_every_case(aap: Suite) -> None:
    async def check(exam: Any) -> None:
        return None

    heard: list[CaseResult] = []
    suite = one_case(aap, check)
    wanted = aap.catalogue.requirements[:1]
    await Runner(suite, Target("http://127.0.0.1:9"), suite.read_profile()).run(wanted, heard.append)
    assert [(result.name, result.outcome) for result in heard] == [("one.case", Outcome.PASSED)]


async def test_what_cannot_be_reached_is_named() -> None:
    async with listening(_hang) as url:
        assert await obstacle(url, 1.0) is None
    assert "refused" in (await obstacle(url, 1.0) or "") or "Connect call failed" in (await obstacle(url, 1.0) or "")
    assert await obstacle("http://127.0.0.1:999999/", 1.0) is not None
