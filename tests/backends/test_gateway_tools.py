"""What a session has reaches agents elsewhere: the gateway runs the tools of its MCP servers, and reads its skills."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

import gateway.model as m
from gateway.backends.agui import AguiBackend, AguiSettings
from gateway.backends.gateway_tools import GatewayTools, OwnCalls
from gateway.backends.remote import RemoteBackend, open_remote
from gateway.backends.system_text import READ_SKILL, SKILLS_HEADING, with_skills
from gateway.client import AddressPolicy
from gateway.errors import NotFound
from gateway.ports import RemoteAddress, RemoteAsk, SessionPlaces
from tests.support.backends import agui_server as driving
from tests.support.backends.agui_server import END, START, call, text
from tests.support.backends.agui_server import Turn as RememberingTurn
from tests.support.backends.function_backends import function_backend
from tests.support.backends.mcp_over_http import McpOverHttp, mcp_over_http
from tests.support.backends.turn_driver import kindly, play
from tests.support.dialect_tables import DIALECTS
from tests.support.gateway_server import Served, serving, until

OWNER = "ann"
LOCAL = AddressPolicy(allow=("127.0.0.1",))
SECRET = "an-mcp-secret-of-some-length"
SKILL = m.SkillRef(name="tidy", description="Cleans tables.", skill_id="installed_skill_1")
SUM, BOTH = '{"a": 2, "b": 3}', ["mine__add", "mine__clock", "read_skill"]
WITH_CLIENT_TOOLS = ("aap", "cas")


@pytest.fixture
async def mine() -> AsyncIterator[McpOverHttp]:
    async with mcp_over_http() as made:
        yield made


def given(mine: McpOverHttp | None = None, *, token: bool = True, **more: Any) -> m.Settings:
    servers = ({"type": "url", "name": "mine", "url": mine.url},) if mine else ()
    headers = {mine.url: f"Authorization: Bearer {SECRET}"} if mine and token else {}
    return m.Settings(**{"mcp_servers": servers, "mcp_headers": headers, "skills": (SKILL,), "system": "Be kind."}
                      | more)


def deny(ask: m.AnyAsk, request_id: str) -> m.Answer:
    return m.DecidePermission(request_id=request_id, granted=False, reason="not now")


def returned(turn: Any) -> dict[str, tuple[Any, ...]]:
    return {one.call_id: (one.content, one.is_error, one.origin) for one in turn.all(m.ToolReturned)}


# -- AG-UI ------------------------------------------------------------------------------------------------------------

@asynccontextmanager
async def agui() -> AsyncIterator[tuple[driving.Server, AguiBackend]]:
    async with driving.server() as agent:
        made = AguiBackend(AguiSettings.model_validate({"url": agent.url, "attempts": 1}), LOCAL)
        try:
            yield agent, made
        finally:
            await made.close()


@pytest.mark.parametrize(("answering", "result"), [
    (kindly, ("5", False, m.ToolOrigin.MCP)), (deny, ("Tool call denied: not now", True, m.ToolOrigin.MCP)),
])
async def test_an_agui_agent_calls_what_the_session_has(
    mine: McpOverHttp, answering: Callable[..., m.Answer], result: tuple[Any, ...],
) -> None:
    async with agui() as (agent, backend):
        agent.play([START, *call("c1", "mine__add", SUM), *call("c2", "read_skill", '{"name": "tidy"}'), END],
                   [START, *text("Five.", "m2"), END])
        turn = await play(backend, RememberingTurn(settings=given(mine), answering=answering))
    first, second = agent.asked
    assert [tool.name for tool in first.tools] == BOTH
    assert first.messages[0].content == with_skills("Be kind.", given())
    assert returned(turn) == {"c1": result, "c2": ("text", False, m.ToolOrigin.BUILTIN)}
    assert [[type(ask) for ask in asks] for asks in turn.asks] == [[m.PermissionAsk]], "a skill is read at once"
    told = {one.tool_call_id: one.content for one in second.messages if one.role == "tool"}
    assert told == {"c1": result[0], "c2": "text"}
    assert {one.get("authorization") for one in mine.headers} == {f"Bearer {SECRET}"}
    assert SECRET not in str(agent.bodies)
    [block, _] = [one.call for one in turn.all(m.BlockEnded) if one.call is not None]
    assert (block.server, block.permission, block.display_name) == ("mine", m.Permission.ASK, "Addition")


async def test_tools_of_the_client_are_still_the_clients() -> None:
    tool = m.ToolSpec(name="mine", description="Mine.")
    async with agui() as (agent, backend):
        agent.play([START, *call("c1", "mine", "{}"), *call("c2", "read_skill", '{"name": "tidy"}'), END],
                   [START, *text("Done.", "m2"), END])
        turn = await play(backend, RememberingTurn(settings=given(client_tools=(tool,))))
    assert [tool.name for tool in agent.asked[0].tools] == ["mine", "read_skill"]
    assert returned(turn) == {
        "c1": ("done by the client", False, m.ToolOrigin.CLIENT), "c2": ("text", False, m.ToolOrigin.BUILTIN)}


async def test_an_agui_agent_is_told_the_choices_of_the_session_and_no_secret() -> None:
    async with agui() as (agent, backend):
        agent.play([START, *text("ok"), END])
        chosen = m.Settings(model="large", options={"tone": "warm"}, secrets={"token": SECRET})
        await play(backend, RememberingTurn(settings=chosen))
    assert agent.asked[0].forwarded_props == {"model": "large", "options": {"tone": "warm"}}
    assert SECRET not in str(agent.bodies)


async def test_a_turn_for_a_plan_has_no_tools(mine: McpOverHttp) -> None:
    async with agui() as (agent, backend):
        agent.play([START, *text("A plan."), END])
        await play(backend, RememberingTurn(m.SendMessage(content="x", mode="planning"), settings=given(mine)))
    assert agent.asked[0].tools == [] and agent.asked[0].messages[0].content == "Be kind."
    assert mine.headers == []


async def test_a_server_that_cannot_be_used_is_told() -> None:
    async with agui() as (agent, backend):
        agent.play([START, *text("ok"), END])
        settings = m.Settings(mcp_servers=({"name": "gone", "url": "http://127.0.0.1:9/mcp"},))
        turn = await play(backend, RememberingTurn(settings=settings))
    [notice] = turn.all(m.NoticePosted)
    assert "'gone'" in notice.title and agent.asked[0].tools == []


# -- servers of the dialects ------------------------------------------------------------------------------------------

@asynccontextmanager
async def far(folder: Path) -> AsyncIterator[Served]:
    """A server whose demo agent calls what it is told to call."""
    (folder / "far").mkdir(exist_ok=True)
    async with serving(folder / "far", dialects={name: {} for name in DIALECTS}, log="memory") as served:
        yield served


def address(served: Served, dialect: str) -> RemoteAddress:
    return RemoteAddress(url=served.url(served.gateway.contexts[dialect].mount))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_remote_agent_calls_what_the_session_has(tmp_path: Path, mine: McpOverHttp, dialect: str) -> None:
    said = f'/tool mine__add {SUM}\n/tool read_skill {{"name": "tidy"}}'
    async with far(tmp_path) as there:
        where = address(there, dialect)
        backend = RemoteBackend(open_remote(dialect, where), dialect, where.url, LOCAL)
        try:
            turn = await play(backend, RememberingTurn(said, settings=given(mine)))
        finally:
            await backend.close()
        [found], _ = await there.gateway.sessions.list("")
        log = await there.gateway.sessions.records("", found.session_id)
    results = [(one.content, one.origin) for one in turn.all(m.ToolReturned)]
    assert SECRET not in str([orjson.loads(m.encode_record(one)) for one in log])
    if dialect not in WITH_CLIENT_TOOLS:
        assert (results, found.settings.client_tools, mine.headers) == ([], (), []), "it is a declared loss"
        return
    assert results == [("5", m.ToolOrigin.MCP), ("text", m.ToolOrigin.BUILTIN)]
    assert [tool.name for tool in found.settings.client_tools] == BOTH
    assert SKILLS_HEADING in (found.settings.system or "") or SKILLS_HEADING in str(found.entries)
    assert [[type(ask) for ask in asks] for asks in turn.asks] == [[m.PermissionAsk]]
    assert {one.get("authorization") for one in mine.headers} == {f"Bearer {SECRET}"}


async def test_a_server_that_connects_by_itself_is_told_of_servers_without_a_token(
    tmp_path: Path, mine: McpOverHttp,
) -> None:
    public = {"type": "url", "name": "wiki", "url": "https://mcp.example.com/mcp", "note": "ours"}
    chosen = {"name": "chosen", "url": mine.url, "tools": ["add"]}
    async with far(tmp_path) as there:
        where = address(there, "cas")
        backend = RemoteBackend(open_remote("cas", where), "cas", where.url, LOCAL)
        try:
            await play(backend, RememberingTurn("hi", settings=given(mcp_servers=(public, chosen))))
        finally:
            await backend.close()
        [found], _ = await there.gateway.sessions.list("")
    assert found.settings.mcp_servers == (
        {"type": "url", "name": "wiki", "url": "https://mcp.example.com/mcp"},)
    assert [tool.name for tool in found.settings.client_tools] == ["chosen__add", "read_skill"]


@pytest.mark.parametrize("dialect", WITH_CLIENT_TOOLS)
async def test_a_call_waits_for_permission_across_a_restart(tmp_path: Path, mine: McpOverHttp, dialect: str) -> None:
    (tmp_path / "near").mkdir()
    async with far(tmp_path) as there:
        settings = {"dialect": dialect, "url": address(there, dialect).url}
        agents = {"demo": {"backend": "remote", "settings": settings}}
        allowed = {"allow": ["127.0.0.1"]}
        async with serving(tmp_path / "near", log="sqlite", agents=agents, outbound=allowed) as here:
            server = {"name": "m", "url": mine.url, "tools": ["add"]}
            chosen = given(mine, token=False, skills=(), mcp_servers=(server,))
            view = await here.gateway.sessions.create(OWNER, "demo", settings=chosen)
            said = m.SendMessage(content=f"/tool m__add {SUM}\nThank you.")
            await here.gateway.sessions.submit(OWNER, view.session_id, [said])
            await until(lambda: view.status is not m.SessionStatus.RUNNING)
            assert [type(one.ask) for one in view.asks.values()] == [m.PermissionAsk]
        async with serving(tmp_path / "near", log="sqlite", agents=agents, outbound=allowed) as here:
            view = await here.gateway.sessions.get(OWNER, view.session_id)
            [request_id] = view.asks
            grant = m.DecidePermission(request_id=request_id, granted=True)
            await here.gateway.sessions.submit(OWNER, view.session_id, [grant])
            await until(lambda: view.status is m.SessionStatus.IDLE)
            tools = [entry.content for entry in view.entries if entry.role is m.Role.TOOL]
            assert tools == ["5"] and m.text_of(view.entries[-1].content).startswith("m__add returned 5")


async def test_what_waited_is_found_again() -> None:
    """A call that needed no permission is run after the restart, too, since it had no result."""
    waits = m.ToolCall(call_id="c1", name=READ_SKILL.name, input={"name": "tidy"}, display_name=READ_SKILL.title)
    turn = RememberingTurn(settings=given(), history=[m.HistoryEntry(
        role=m.Role.ASSISTANT, content=(m.ToolUsePart(call=waits),), seq=1, at=0.0)])
    async with GatewayTools(turn, LOCAL) as tools:
        question = RemoteAsk(ask=m.QuestionAsk(questions=(m.Question(question="Which?"),)), ref="q")
        calls = OwnCalls.resumed(turn, tools, [question])
        assert calls.people == [question]
        answer = m.AnswerQuestion(request_id="", message="this")
        assert [event.name async for event in calls.run([answer])] == ["tool.status", "tool.returned"]  # type: ignore[union-attr]
    assert calls.of_people == [(question, answer)]
    assert [one for _, one in calls.answered] == [answer, m.ReturnResult(request_id="", content="text")]


async def no_places() -> SessionPlaces:
    return SessionPlaces()


async def test_an_agent_without_a_place_gets_no_tools(mine: McpOverHttp) -> None:
    async with GatewayTools(RememberingTurn(settings=given(mine)), LOCAL, no_places) as tools:
        assert (tools.specs, tools.added_to(given(mine)).system) == ((), "Be kind.")
    assert mine.headers == []


# -- functions --------------------------------------------------------------------------------------------------------

async def test_a_function_calls_the_tools_of_the_session(mine: McpOverHttp) -> None:
    async def agent(turn: Any) -> AsyncIterator[str]:
        names = [tool.name for tool in await turn.tools()]
        five = await turn.call_tool("mine__add", {"a": 2, "b": 3})
        skill = await turn.call_tool("read_skill", {"name": "tidy"})
        yield f"{names} {five.content} {skill.content}"

    def plain(turn: Any) -> str:
        return f"{turn.call_tool('mine__add', {'a': 2, 'b': 3}).content} of {len(turn.tools())}"

    turn = await play(function_backend(agent, addresses=LOCAL), RememberingTurn(settings=given(mine)))
    assert turn.text == f"{BOTH} 5 text"
    assert [(one.content, one.origin) for one in turn.all(m.ToolReturned)] == [
        ("5", m.ToolOrigin.MCP), ("text", m.ToolOrigin.BUILTIN)]
    turn = await play(function_backend(plain, addresses=LOCAL), RememberingTurn(settings=given(mine)))
    assert turn.text == "5 of 3"


async def test_a_function_that_calls_nothing_connects_to_nothing(mine: McpOverHttp) -> None:
    await play(function_backend(lambda text: text, addresses=LOCAL), RememberingTurn(settings=given(mine)))
    assert mine.headers == []


async def test_a_function_is_told_which_tools_there_are() -> None:
    async def agent(turn: Any) -> str:
        await turn.call_tool("fly")
        return ""

    with pytest.raises(NotFound, match="no tool 'fly'; it has: read_skill"):
        await play(function_backend(agent, addresses=LOCAL), RememberingTurn(settings=given()))
