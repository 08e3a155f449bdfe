"""Clients under test, which do what a cue says: the suite's own, right or wrong in one thing, and our client roles."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import conformance.clients
import gateway.model as m
from conformance.clients.client_base import Wrong, read_wrongs
from conformance.clients.runner import ClientRunner, Driver, Examination
from conformance.clients.situation import ECHO, Cue, Instruction
from conformance.clients.suite import client_dialects, load_client_suite
from conformance.kit.verdict import Outcome, Report
from gateway.backends.remote import open_remote
from gateway.errors import GatewayError
from gateway.ports import NewRemoteSession, Remote, RemoteAddress, RemoteAsk, RemoteTurn
from tests.simulation import simulated

KEY = "key-of-the-examined-client"
HOME = Path(conformance.clients.__file__).parent


def wrong_clients() -> list[Any]:
    """A parameter for each: its dialect, and what it is wrong about."""
    return [pytest.param(dialect, row, id=f"{row.requirement}-{row.name}")
            for dialect in client_dialects() for row in read_wrongs(HOME / dialect)]


def driver(dialect: str, wrong: str | None = None) -> Driver:
    """Drives the suite's own client, which is right but for what is named."""
    drive = import_module(f"conformance.clients.{dialect}.client").drive
    return lambda cue: drive(cue, wrong)


def assert_failed(dialect: str, row: Wrong) -> None:
    """A wrong client fails the requirement that it breaks."""
    report = examine(dialect, driver(dialect, row.name), [row.requirement])
    assert [item.outcome for item in report.findings] == [Outcome.FAILED], kept(report, lambda outcome: True)


def remote_driver(dialect: str) -> Driver:
    """Drives the client role of a dialect."""

    async def drive(cue: Cue) -> None:
        remote = open_remote(dialect, RemoteAddress(url=cue.url, key=cue.key or ""))
        try:
            await _converse(remote, cue.instruction)
        finally:
            await remote.close()

    return drive


async def _converse(remote: Remote, told: Instruction) -> None:
    settings = await _settings(remote, told)
    session, answer = await remote.open(NewRemoteSession(settings=settings)), ""
    for message in told.messages:
        text, answer = answer if message == ECHO else message, ""
        try:
            answer = await _turn(remote, session, text, settings, told)
        except GatewayError:
            continue


async def _settings(remote: Remote, told: Instruction) -> m.Settings:
    card = await remote.about()
    tools: dict[str, m.Permission] | None = None
    if told.server_tool and any(tool.spec.name == told.server_tool for tool in card.tools):
        tools = {told.server_tool: m.Permission.ALLOW if told.is_trusted else m.Permission.ASK}
    own = (m.ToolSpec(**told.tool),) if told.tool and card.capabilities.client_tools else ()
    return m.Settings(tools=tools, client_tools=own)


async def _turn(remote: Remote, session: str, text: str, settings: m.Settings, told: Instruction) -> str:
    """The text of a turn; what it asks is answered as the instruction says."""
    turn, said = remote.start_turn(session, m.SendMessage(content=text), settings), ""
    while True:
        asked: list[RemoteAsk] = []
        async for item in turn:
            if isinstance(item, RemoteAsk):
                asked.append(item)
            elif isinstance(item, m.BlockDelta) and item.kind is m.BlockKind.TEXT:
                said += item.delta
                if told.stop:
                    await _stop(remote, session, turn)
                    return said
        if not asked:
            return said
        turn = remote.answer(session, [(one, _answer(one, told)) for one in asked])


async def _stop(remote: Remote, session: str, turn: RemoteTurn) -> None:
    await remote.interrupt(session)
    async for _ in turn:
        pass


def _answer(asked: RemoteAsk, told: Instruction) -> m.Answer:
    match asked.ask:
        case m.PermissionAsk():
            return m.DecidePermission(request_id=asked.ref, granted=told.decision == "allow", reason="because")
        case m.ClientToolAsk():
            return m.ReturnResult(request_id=asked.ref, content=told.result or "")
        case m.QuestionAsk(questions=questions):
            picks = {str(number): (told.option or 0,) for number in range(len(questions))}
            return m.AnswerQuestion(request_id=asked.ref, selections=picks)
        case m.ContinuationAsk():
            return m.ContinueTurn(request_id=asked.ref, proceed=told.decision != "deny")
        case m.RollbackAsk(options=options):
            return m.RollBack(request_id=asked.ref, option=str(options[told.option or 0].get("id", "")))


def examine(dialect: str, driver: Driver, only: Sequence[str] = (), timeout: float = 60.0) -> Report:
    """The report on a client, in simulated time."""
    suite = load_client_suite(dialect)
    wanted = [item for item in suite.catalogue.requirements if not only or item.id in only]
    return simulated(ClientRunner(suite, Examination(key=KEY, timeout=timeout), driver).run(wanted))


def kept(report: Report, is_wanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """The requirements of the outcomes that are wanted, with what was found."""
    return {
        item.requirement.id: [f"{it.name}: {it.remark}" for it in item.grave]
        for item in report.findings if is_wanted(item.outcome)
    }
