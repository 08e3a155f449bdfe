"""The tool round: each call according to its origin and permission, one ask for all that must be asked."""

import asyncio
from typing import Any

import pytest

import gateway.model as m
from gateway.backends import EventWriter, Tool, ToolCallResult, ToolExecutor, enabled_tools
from gateway.ports import ScopedEvent
from tests.support.backends.turn_driver import FakeTurn


class Gate:
    """A tool that comes back when it is let."""

    def __init__(self, name: str) -> None:
        self.open = asyncio.Event()
        self.left = False
        self.tool = Tool(m.ToolSpec(name=name), self.work)

    async def work(self, input: dict[str, Any], out: Any) -> ToolCallResult:
        try:
            out("waiting")
            await self.open.wait()
            return ToolCallResult(content=self.tool.spec.name, meta={"seen": input})
        finally:
            self.left = True


class Talk:
    """A message with calls, then the round they bring about."""

    def __init__(self, answering: Any = None, scope_id: str = "root", **said: Any) -> None:
        self.turn = FakeTurn(m.SendMessage(content="", **said), **({"answering": answering} if answering else {}))
        if scope_id != "root":
            self.turn.record(m.ScopeOpened(parent="root"), scope_id)
        self.writer = EventWriter(self.turn, scope_id)
        self.gates = {name: Gate(name) for name in "abc"}
        self.round = ToolExecutor(self.turn, self.writer, {name: gate.tool for name, gate in self.gates.items()})
        self.hear(self.writer.start_message())

    def hear(self, said: Any) -> Any:
        event, scope_id = (said.event, said.scope_id) if isinstance(said, ScopedEvent) else (said, "root")
        self.turn.record(event, scope_id)
        return event

    def call(
        self, name: str, permission: m.Permission = m.Permission.ALLOW, origin: m.ToolOrigin = m.ToolOrigin.BUILTIN,
    ) -> None:
        for said in self.writer.call(name, {"n": 1}, call_id=name, permission=permission, origin=origin):
            self.hear(said)

    async def carry_out(self) -> list[str]:
        self.hear(self.writer.end_message(stop_reason=m.StopReason.TOOL_USE))
        return [self.words(self.hear(said)) async for said in self.round.run()]

    @staticmethod
    def words(event: Any) -> str:
        told = event.content if isinstance(event, m.ToolReturned) else event.variant or event.delta
        return f"{event.call_id} {told}"


async def test_results_come_as_each_finishes() -> None:
    talk = Talk()
    talk.call("a")
    talk.call("b")
    talk.hear(talk.writer.end_message())
    heard = []
    async for said in talk.round.run():
        heard.append(Talk.words(talk.hear(said)))
        if heard[-1] == "b waiting":
            talk.gates["b"].open.set()
        if heard[-1] == "b b":
            talk.gates["a"].open.set()
    assert heard == ["a running", "b running", "a waiting", "b waiting", "b b", "a a"]
    assert talk.round.results["a"].meta == {"seen": {"n": 1}}
    assert not talk.turn.grammar.calls


async def test_what_must_be_asked_is_asked_together_after_the_rest() -> None:
    def answer(ask: m.AnyAsk, request_id: str) -> Any:
        if ask.kind == "client_tool":
            return m.ReturnResult(request_id=request_id, content="mine", is_error=True)
        return m.DecidePermission(request_id=request_id, granted=ask.call.name == "b", reason="never")  # type: ignore[union-attr]

    talk = Talk(answer)
    talk.call("c", m.Permission.DENY)
    talk.call("theirs", origin=m.ToolOrigin.CLIENT)
    talk.call("a")
    talk.call("b", m.Permission.ASK)
    talk.call("x", m.Permission.ASK)
    talk.gates["a"].open.set()
    talk.gates["b"].open.set()
    assert await talk.carry_out() == [
        "c Tool call denied: the session does not allow it",
        "theirs pending", "b pending", "x pending", "a running", "a waiting", "a a",
        "theirs awaiting_input", "b awaiting_input", "x awaiting_input",
        "theirs mine", "x Tool call denied: never", "b running", "b waiting", "b b",
    ]
    assert [[ask.kind for ask in asks] for asks in talk.turn.asks] == [["client_tool", "permission", "permission"]]
    assert talk.round.results["theirs"].origin is m.ToolOrigin.CLIENT
    assert talk.round.results["theirs"].is_error


async def test_a_withdrawn_ask_cancels_its_call() -> None:
    talk = Talk(lambda ask, request_id: m.Withdraw(request_id=request_id))
    talk.call("a", m.Permission.ASK)
    assert await talk.carry_out() == ["a awaiting_input", "a cancelled", "a Tool call cancelled"]


async def test_an_unknown_tool_is_an_error_result() -> None:
    talk = Talk()
    talk.call("zither")
    assert await talk.carry_out() == ["zither running", "zither There is no tool zither"]


async def test_a_providers_call_is_left_alone() -> None:
    talk = Talk()
    talk.call("web", origin=m.ToolOrigin.PROVIDER)
    assert await talk.carry_out() == []


async def test_a_child_says_its_round_in_its_own_scope() -> None:
    talk = Talk(scope_id="scope_1")
    talk.call("a", m.Permission.ASK)
    talk.gates["a"].open.set()
    await talk.carry_out()
    assert {record.scope_id for record in talk.turn.records if record.event.name.startswith(("tool", "input"))} \
        == {"scope_1"}


async def test_closing_the_round_stops_the_tools() -> None:
    talk = Talk()
    talk.call("a")
    talk.hear(talk.writer.end_message())
    said = talk.round.run()
    await anext(said)
    await anext(said)
    await said.aclose()
    assert talk.gates["a"].left


async def test_a_tool_that_breaks_breaks_the_turn() -> None:
    async def work(input: dict[str, Any], out: Any) -> ToolCallResult:
        raise ZeroDivisionError

    talk = Talk()
    tools = {"a": Tool(m.ToolSpec(name="a"), work), "b": talk.gates["b"].tool}
    talk.round = ToolExecutor(talk.turn, talk.writer, tools)
    talk.call("a")
    talk.call("b")
    talk.gates["b"].open.set()
    with pytest.raises(ZeroDivisionError):
        await talk.carry_out()


async def test_where_nobody_can_be_asked_what_may_be_asked_for_is_done() -> None:
    talk = Talk(headless=True)
    talk.call("a", m.Permission.ASK)
    talk.call("b", m.Permission.DENY)
    talk.call("theirs", origin=m.ToolOrigin.CLIENT)
    talk.gates["a"].open.set()
    heard = await talk.carry_out()
    assert "a a" in heard
    assert "b Tool call denied: the session does not allow it" in heard
    assert [[ask.kind for ask in asks] for asks in talk.turn.asks] == [["client_tool"]]


async def test_a_plan_carries_nothing_out() -> None:
    talk = Talk(mode="planning")
    talk.call("a")
    talk.call("b", m.Permission.ASK)
    assert [line.partition(":")[0] for line in await talk.carry_out()] == ["a Tool call denied", "b Tool call denied"]
    assert enabled_tools(talk.turn) == {}
