"""The tools of a turn: names that any service takes, permissions that nobody widens."""

import pytest

import gateway.model as m
from gateway.backends.llm.service import service_error
from gateway.backends.toolbox import ANY_OBJECT_SCHEMA, McpTool, Toolbox
from gateway.backends.tools import CLOCK, Tool, ToolCallResult
from gateway.client import HttpClient
from gateway.errors import BackendFailed, Overloaded
from tests.support.backends.model_services import turn_of


async def nothing(input: object, out: object) -> ToolCallResult:
    return ToolCallResult()


def mcp(server: str, name: str, permission: m.Permission = m.Permission.ALLOW) -> McpTool:
    spec = m.ToolSpec(name=name, title=name.title())
    return McpTool(server=server, spec=spec, tool=Tool(spec, nothing), permission=permission)


OWN = {"clock": Tool(CLOCK, nothing)}


def box(
    settings: m.Settings | None = None, permission: m.Permission = m.Permission.ALLOW, *tools: McpTool
) -> Toolbox:
    return Toolbox(turn_of(settings=settings), OWN, {"clock": permission}, tools)


def test_names_that_clash_are_told_apart_by_their_servers() -> None:
    settings = m.Settings(client_tools=(m.ToolSpec(name="read"),))
    made = box(settings, m.Permission.ALLOW, mcp("a", "clock"), mcp("a", "read"), mcp("a", "write"), mcp("b", "one"),
               mcp("c", "one"))
    assert [spec.name for spec in made.specs] == [
        "clock", "a__clock", "a__read", "write", "b__one", "c__one", "read"]
    assert made.call("b__one", "x") == m.ToolCall(
        call_id="x", name="b__one", origin=m.ToolOrigin.MCP, server="b", display_name="One")
    assert made.call("read", "x").origin is m.ToolOrigin.CLIENT
    assert set(made.tools) == {"clock", "a__clock", "a__read", "write", "b__one", "c__one"}


def test_a_tool_that_is_denied_takes_no_name_from_others() -> None:
    made = box(None, m.Permission.ALLOW, mcp("a", "one"), mcp("b", "one", m.Permission.DENY))
    assert [spec.name for spec in made.specs] == ["clock", "one"]


def test_names_are_fitted_and_found_again() -> None:
    settings = m.Settings(client_tools=(m.ToolSpec(name="a.b"), m.ToolSpec(name="a b"), m.ToolSpec(name="ü" * 80)))
    made = box(settings)
    assert [spec.name for spec in made.specs[1:]] == ["a_b", "a_b_2", "_" * 64]
    assert [made.call(name, "x").name for name in ("a_b", "a_b_2")] == ["a.b", "a b"]
    assert (made.service_name("a b"), made.service_name("never.seen")) == ("a_b_2", "never_seen")
    assert made.specs[1].parameters == ANY_OBJECT_SCHEMA


@pytest.mark.parametrize(("operator", "session", "given"), [
    (m.Permission.ALLOW, None, m.Permission.ALLOW), (m.Permission.ASK, None, m.Permission.ASK),
    (m.Permission.ASK, {"clock": m.Permission.ALLOW}, m.Permission.ALLOW),
    (m.Permission.ALLOW, {"clock": m.Permission.ASK}, m.Permission.ASK),
    (m.Permission.DENY, {"clock": m.Permission.ALLOW}, None), (m.Permission.ALLOW, {}, None),
    (m.Permission.ALLOW, {"clock": m.Permission.DENY}, None),
])
def test_who_decides(
    operator: m.Permission, session: dict[str, m.Permission] | None, given: m.Permission | None
) -> None:
    made = box(m.Settings(tools=session), operator)
    assert [made.call(spec.name, "x").permission for spec in made.specs] == ([given] if given else [])


def test_what_the_card_says_counts_where_the_session_says_nothing() -> None:
    card = m.AgentCard(name="a", tools=(m.AgentTool(spec=CLOCK, permission=m.Permission.ASK),))
    made = Toolbox(turn_of(agent=card), OWN, {"clock": m.Permission.ALLOW})
    assert made.call("clock", "x").permission is m.Permission.ASK


def test_a_tool_nobody_has_can_be_called_all_the_same() -> None:
    assert box().call("nobody", "x") == m.ToolCall(call_id="x", name="nobody")


def test_a_fault_is_known_by_its_type_or_code() -> None:
    upstream = HttpClient("http://upstream.test")
    assert type(service_error({"code": "overloaded", "message": "x"}, upstream)) is Overloaded
    assert service_error(None, upstream).message.startswith("http://upstream.test aborted its response")
    assert type(service_error({"type": "novel"}, upstream)) is BackendFailed
