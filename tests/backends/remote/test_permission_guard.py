"""A permission never becomes laxer because there is a gateway in between: two of them in a row, in each dialect."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import gateway.model as m
from gateway.backends.remote import open_remote
from gateway.backends.remote.backend import SESSION_KEY
from gateway.ports.remote import RemoteAddress
from tests.support.dialect_tables import DIALECTS, dialects_with_feature
from tests.support.gateway_server import Served, serving, until

CAN_ASK = dialects_with_feature("permissions")
"""Dialects in which a server can ask."""
REMOTES = {name: open_remote(name, RemoteAddress(url="http://127.0.0.1:9")) for name in CAN_ASK}
TOLD = [name for name, remote in REMOTES.items() if remote.supports_permissions]
UNTOLD = [name for name in CAN_ASK if name not in TOLD]
"""Dialects that can tell a server what it may do with its tools, and those that cannot."""
CALC = '/tool calc {"expression": "6*7"} well'
OWN = m.Settings(client_tools=(m.ToolSpec(name="lamp", description="On.", parameters={"type": "object"}),))


def tools(**permissions: str) -> list[dict[str, Any]]:
    return [{"name": name, "permission": permission} for name, permission in permissions.items()]


ALL, CAREFUL = tools(clock="allow", calc="allow"), tools(clock="allow", calc="ask")


class Row:
    """A gateway with the agent, and one that has it as its own."""

    def __init__(self, far: Served, near: Served) -> None:
        self.far, self.near = far, near

    async def say(self, text: str, settings: m.Settings | None = None, **more: Any) -> m.SessionView:
        sessions = self.near.gateway.sessions
        view = await sessions.create("", "demo", settings=settings or m.Settings())
        await self.go_on(view, m.SendMessage(content=text, **more))
        return view

    async def go_on(self, view: m.SessionView, *commands: Any) -> None:
        await self.near.gateway.sessions.submit("", view.session_id, list(commands))
        await until(lambda: view.status is not m.SessionStatus.RUNNING)

    async def end(self, view: m.SessionView) -> m.TurnEnded:
        await self.near.gateway.runtime.log.wait_stored(view.session_id, view.head)
        records = await self.near.gateway.sessions.records("", view.session_id)
        [end] = [record.event for record in records if isinstance(record.event, m.TurnEnded)]
        return end

    async def used(self, view: m.SessionView) -> int:
        """How often the agent there has used a tool with success."""
        theirs = await self.far.gateway.sessions.get("", view.metadata[SESSION_KEY])
        await self.far.gateway.runtime.log.wait_stored(theirs.session_id, theirs.head)
        records = await self.far.gateway.sessions.records("", theirs.session_id)
        return sum(isinstance(record.event, m.ToolReturned) and not record.event.is_error for record in records)


@asynccontextmanager
async def in_a_row(folder: Path, dialect: str, far: list[Any], near: list[Any] | None = None) -> AsyncIterator[Row]:
    async with AsyncExitStack() as stack:
        for name in ("far", "near"):
            (folder / name).mkdir()
        agent = {"backend": "demo", "tools": far}
        there = await stack.enter_async_context(
            serving(folder / "far", dialects={dialect: {}}, agents={"demo": agent}, log="memory"))
        url = there.url(there.gateway.contexts[dialect].mount)
        remote: dict[str, Any] = {"backend": "remote", "settings": {"dialect": dialect, "url": url}}
        remote |= {} if near is None else {"tools": near}
        here = await stack.enter_async_context(
            serving(folder / "near", dialects={"aap": {}}, agents={"demo": remote}, log="memory"))
        yield Row(there, here)


@pytest.mark.parametrize("settings", [m.Settings(), OWN], ids=["silent", "with a tool of its own"])
@pytest.mark.parametrize("dialect", CAN_ASK)
async def test_what_the_server_asks_about_is_asked_where_nobody_here_says_anything(
    tmp_path: Path, dialect: str, settings: m.Settings,
) -> None:
    async with in_a_row(tmp_path, dialect, CAREFUL) as row:
        view = await row.say(CALC, settings)
        [(request_id, pending)] = view.asks.items()
        assert (pending.ask.kind, await row.used(view)) == ("permission", 0)
        await row.go_on(view, m.DecidePermission(request_id=request_id, granted=True))
        assert ((await row.end(view)).outcome, await row.used(view)) == (m.Outcome.COMPLETED, 1)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_the_server_allows_is_not_asked_about(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, ALL) as row:
        view = await row.say(CALC)
        assert ((await row.end(view)).outcome, await row.used(view)) == (m.Outcome.COMPLETED, 1)


@pytest.mark.parametrize("dialect", TOLD)
async def test_what_the_operator_here_asks_about_is_asked(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, ALL, CAREFUL) as row:
        view = await row.say(CALC)
        assert [pending.ask.kind for pending in view.asks.values()] == ["permission"]
        assert await row.used(view) == 0


@pytest.mark.parametrize("dialect", UNTOLD)
async def test_a_server_that_cannot_be_told_is_stopped_when_it_does_not_ask(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, ALL, CAREFUL) as row:
        end = await row.end(await row.say(f"{CALC} /slow 1000"))
        assert end.fault is not None
        assert (end.outcome, end.fault.code) == (m.Outcome.FAILED, m.FaultCode.BACKEND)
        assert "used its tool 'calc' without asking" in end.fault.message
        assert (await row.end(await row.say("/tool clock"))).outcome is m.Outcome.COMPLETED


@pytest.mark.parametrize("dialect", UNTOLD)
async def test_it_is_not_stopped_when_it_asks_by_itself_or_nobody_is_there_to_ask(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, CAREFUL, CAREFUL) as row:
        view = await row.say(CALC)
        [request_id] = view.asks
        await row.go_on(view, m.DecidePermission(request_id=request_id, granted=True))
        assert (await row.end(view)).outcome is m.Outcome.COMPLETED
    (tmp_path / "again").mkdir()
    async with in_a_row(tmp_path / "again", dialect, ALL, CAREFUL) as row:
        view = await row.say(CALC, headless=True)
        assert ((await row.end(view)).outcome, await row.used(view)) == (m.Outcome.COMPLETED, 1)


@pytest.mark.parametrize("dialect", CAN_ASK)
async def test_a_tool_that_a_session_does_not_have_is_not_used(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, ALL, ALL) as row:
        view = await row.say(CALC, m.Settings(tools={"clock": m.Permission.ALLOW}))
        fault = (await row.end(view)).fault
        if dialect == "zenflux":
            assert fault is not None
            assert "which is not allowed here" in fault.message
        else:
            assert (fault, await row.used(view)) == (None, 0)


@pytest.mark.parametrize("dialect", TOLD)
async def test_there_are_no_tools_to_make_a_plan_with(tmp_path: Path, dialect: str) -> None:
    async with in_a_row(tmp_path, dialect, ALL) as row:
        view = await row.say(CALC, mode="planning")
        assert await row.used(view) == 0
        await row.go_on(view, m.SendMessage(content=CALC))
        assert await row.used(view) == 1
