"""AAP, inward: what clients send becomes commands, or is refused with the reason."""

from typing import Any

import pytest
from msgspec.structs import replace

import gateway.model as m
from adapters.aap import wire
from adapters.aap.server import inbound
from gateway.errors import GatewayError
from tests.support.dialect_tables import table
from tests.support.engine.engine_fixture import CARD

CAPABLE = replace(CARD, capabilities=m.AgentCapabilities(images=("http", "data")))
CALL = m.ToolCall(call_id="call_1", name="calc")
SPEC = {"name": "mine", "description": "", "parameters": {}}


def view(*asks: m.AnyAsk, settings: m.Settings = m.Settings()) -> m.SessionView:  # noqa: B008
    open_asks = {
        f"ask_{n}": m.OpenAsk(request_id=f"ask_{n}", ask=ask, seq=n, at=0, turn_id="t", scope_id="root",
                            call_id=getattr(ask, "call", None) and ask.call.call_id)
        for n, ask in enumerate(asks, 1)
    }
    return m.SessionView(session_id="s", agent="agent", asks=open_asks, settings=settings)


def commands(body: dict[str, Any], session: m.SessionView, card: m.AgentCard = CAPABLE) -> list[m.AnyCommand]:
    return inbound.commands_of(wire.NewTurn.model_validate(body), session, card, table("aap"))


def one(message: dict[str, Any], session: m.SessionView) -> m.AnyCommand:
    [command] = commands({"messages": [message]}, session)
    return command


def tool(content: Any, call_id: str = "call_1") -> dict[str, Any]:
    return {"role": "tool", "toolCallId": call_id, "content": content}


def permission(granted: bool, call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"role": "tool_permission", "toolCallId": call_id, "granted": granted, **more}


# -- messages ---------------------------------------------------------------------------------------------------------

def test_a_user_message_keeps_its_spelling() -> None:
    assert one({"role": "user", "content": "hi"}, view()) == m.SendMessage(content="hi")
    blocks = [
        {"type": "text", "text": "look"}, {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "toolCallId": "c", "name": "n", "input": {"a": 1}},
        {"type": "image", "url": "https://x.test/p.png"}, {"type": "image", "url": "data:image/png;base64,AA=="},
    ]
    assert one({"role": "user", "content": blocks}, view()) == m.SendMessage(content=(
        m.TextPart(text="look"), m.ThinkingPart(text="hm"),
        m.ToolUsePart(call=m.ToolCall(call_id="c", name="n", input={"a": 1})),
        m.ImagePart(url="https://x.test/p.png"), m.ImagePart(url="data:image/png;base64,AA=="),
    ))


def test_an_answer_fits_what_was_asked() -> None:
    asks = view(m.PermissionAsk(call=CALL))
    assert one(permission(True), asks) == m.DecidePermission(request_id="ask_1", granted=True)
    assert one(permission(False, reason="no"), asks) == m.DecidePermission(
        request_id="ask_1", granted=False, reason="no")
    assert one(tool("42"), view(m.ClientToolAsk(call=CALL))) == m.ReturnResult(request_id="ask_1", content="42")
    assert one(tool([{"type": "text", "text": "42"}]), view(m.ClientToolAsk(call=CALL))) == m.ReturnResult(
        request_id="ask_1", content=(m.TextPart(text="42"),))


def test_a_question_is_answered_by_a_tool_message() -> None:
    asked = view(m.QuestionAsk(questions=(m.Question(question="a"), m.Question(question="b")), call=CALL))
    assert one(tool(" both "), asked) == m.AnswerQuestion(
        request_id="ask_1", custom={"0": "both", "1": "both"}, said=" both ")


def test_an_ask_without_a_call_is_answered_by_its_own_id() -> None:
    asked = view(m.ContinuationAsk(turn=1, message="more?"))
    assert one(permission(False, "ask_1"), asked) == m.ContinueTurn(request_id="ask_1", proceed=False)
    assert one(tool("No", "ask_1"), asked) == m.ContinueTurn(request_id="ask_1", proceed=False, said="No")
    assert one(tool("yes please", "ask_1"), asked) == m.ContinueTurn(
        request_id="ask_1", proceed=True, said="yes please")
    asked = view(m.RollbackAsk(task_id="t", options=()))
    assert one(tool("opt_2", "ask_1"), asked) == m.RollBack(request_id="ask_1", option="opt_2", said="opt_2")


@pytest.mark.parametrize(("messages", "complaint"), [
    ([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}], "one user message"),
    ([{"role": "user", "content": "a"}, permission(True)], "not both"),
    ([permission(True, "call_9")], "'call_9' is not pending"),
    ([tool("x", "call_9")], "'call_9' is not pending"),
    ([tool("x")], "waits for a tool_permission"),
])
def test_what_does_not_fit_is_refused(messages: list[dict[str, Any]], complaint: str) -> None:
    with pytest.raises(GatewayError, match=complaint):
        commands({"messages": messages}, view(m.PermissionAsk(call=CALL)))


def test_a_permission_is_no_result() -> None:
    with pytest.raises(GatewayError, match="waits for a tool message"):
        one(permission(True), view(m.ClientToolAsk(call=CALL)))


# -- settings ---------------------------------------------------------------------------------------------------------

def test_options_merge_and_tools_replace() -> None:
    session = view(settings=m.Settings(
        options={"tone": "warm", "size": "small"}, tools={"clock": m.Permission.ALLOW},
        client_tools=(m.ToolSpec(name="old"),),
    ))
    body = {
        "messages": [{"role": "user", "content": "hi"}], "tools": [SPEC],
        "agent": {"options": {"size": "large"}, "tools": [{"name": "calc"}, {"name": "clock", "trust": True}]},
    }
    assert commands(body, session)[0] == m.Configure(settings=m.Settings(
        options={"tone": "warm", "size": "large"}, tools={"calc": m.Permission.ASK, "clock": m.Permission.ALLOW},
        client_tools=(m.ToolSpec(name="mine"),),
    ))


def test_what_is_not_said_does_not_change() -> None:
    session = view(settings=m.Settings(options={"tone": "warm"}, tools={}))
    assert commands({"messages": [{"role": "user", "content": "hi"}], "agent": {}}, session) == [
        m.SendMessage(content="hi"),
    ]


def test_the_agent_cannot_change() -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "agent": {"name": "other"}}
    with pytest.raises(GatewayError, match="cannot change"):
        commands(body, view())
    body["agent"] = {"name": "agent"}
    assert commands(body, view()) == [m.SendMessage(content="hi")]


def test_what_the_agent_cannot_do_is_refused() -> None:
    hi = {"role": "user", "content": "hi"}
    quiet = replace(CARD, capabilities=m.AgentCapabilities(streaming=("none",), images=("http",)))
    with pytest.raises(GatewayError, match="does not stream as 'delta'"):
        commands({"messages": [hi], "stream": "delta"}, view(), quiet)
    picture = {"role": "user", "content": [{"type": "image", "url": "data:image/png;base64,AA=="}]}
    with pytest.raises(GatewayError, match="images by data"):
        commands({"messages": [picture]}, view(), quiet)


# -- new sessions -----------------------------------------------------------------------------------------------------

def new(**body: Any) -> wire.NewSession:
    return wire.NewSession.model_validate({"agent": {"name": "agent"}, **body})


def test_absent_tools_are_all_off() -> None:
    assert inbound.settings_of(new(), CARD) == m.Settings(tools={})
    given = new(agent={"name": "agent", "tools": [{"name": "calc", "trust": True}], "options": {"tone": "x"}},
                tools=[SPEC])
    assert inbound.settings_of(given, CARD) == m.Settings(
        tools={"calc": m.Permission.ALLOW}, options={"tone": "x"}, client_tools=(m.ToolSpec(name="mine"),),
    )


def test_seeds_become_history() -> None:
    body = new(messages=[
        {"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}, tool("42", "call_7"),
    ])
    assert inbound.seed_of(body, CAPABLE, table("aap")) == [
        m.SeedMessage(role=m.Role.SYSTEM, content="be kind"), m.SeedMessage(role=m.Role.USER, content="hi"),
        m.SeedMessage(role=m.Role.ASSISTANT, content=(m.TextPart(text="hello"),)),
        m.SeedMessage(role=m.Role.TOOL, content="42", call_id="call_7"),
    ]


def test_nothing_is_named_twice() -> None:
    tools = [{"name": "calc"}, {"name": "calc", "trust": True}]
    with pytest.raises(GatewayError, match="'calc' is named twice"):
        inbound.settings_of(wire.NewSession.model_validate({"agent": {"name": "agent", "tools": tools}}), CARD)
    with pytest.raises(GatewayError, match="'call_1' is answered twice"):
        commands({"messages": [tool("a"), tool("b")]}, view(m.ClientToolAsk(call=CALL)))
