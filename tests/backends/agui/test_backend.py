"""An AG-UI agent at a real address: runs, tools of the client, interrupts, state, and everything that breaks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest
from ag_ui.core import Interrupt, RunFinishedCancelledOutcome, RunFinishedInterruptOutcome, TokenUsage
from ag_ui.core import events as agui
from aiohttp import web

import gateway.model as m
from gateway.client import events_of
from gateway.errors import BackendFailed, GatewayError, Interrupted, RateLimited, TimedOut, Unsupported
from tests.support.backends.agui_server import (
    END,
    START,
    Server,
    Turn,
    backend,
    call,
    encoded,
    played,
    result,
    server,
    text,
)
from tests.support.backends.turn_driver import play, record_all

MINE = m.Settings(client_tools=(m.ToolSpec(name="mine", description="A tool.", parameters={"type": "object"}),))


@pytest.fixture
async def agent() -> AsyncIterator[Server]:
    async with server() as made:
        yield made


async def test_a_run_is_a_turn(agent: Server) -> None:
    agent.play([START, *text("Let me look. "), *call("c1", "search", '{"q":', '"x"}', parent="m1"),
                result("c1", "found"), *text("Here.", "m2"), END.model_copy(update={"usage": [
                    TokenUsage(input_tokens=10, output_tokens=5, cached_input_tokens=4, reasoning_tokens=2)]})])
    async with backend(agent.url) as made:
        turn = await played(made)
    assert turn.text == "Let me look. Here."
    assert turn.results == ["found"]
    assert turn.stops == ["tool_use", "end_turn"]
    [_, usage] = [event.usage for event in turn.all(m.MessageEnded)]
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens, usage.thinking_tokens) == (6, 4, 5, 2)
    assert [len(entry.content) for entry in turn.view.entries if entry.role is m.Role.ASSISTANT] == [2, 1]


async def test_every_byte_by_itself(agent: Server) -> None:
    whole = encoded(START, *text("grüß dich \U0001f600", cuts=3), *call("c", "t", '{"ü":1}'), result("c", "é"), END)
    agent.play(iter([whole]), iter(bytes([byte]) for byte in whole))
    async with backend(agent.url) as made:
        at_once, by_bytes = await played(made), await played(made)
    assert at_once.outline == by_bytes.outline
    assert at_once.results == by_bytes.results == ["é"]
    assert [event.delta for event in at_once.all(m.BlockDelta)] == [event.delta for event in by_bytes.all(m.BlockDelta)]
    assert by_bytes.text == "grüß dich \U0001f600"


async def test_the_agent_is_sent_the_whole_conversation(agent: Server) -> None:
    agent.play([START, *text("ok"), END])
    history = [
        m.HistoryEntry(role=m.Role.SYSTEM, content="a summary", seq=1, at=0),
        m.HistoryEntry(role=m.Role.USER, content="hi", seq=2, at=0, message_id="u1"),
        m.HistoryEntry(role=m.Role.ASSISTANT, seq=3, at=0, message_id="a1", content=(
            m.ThinkingPart(text="hm", signature="sig"), m.ThinkingPart(text="unsigned"), m.TextPart(text="hello"))),
        m.HistoryEntry(role=m.Role.TOOL, content="failed", seq=4, at=0, call_id="c0", is_error=True),
        m.HistoryEntry(role=m.Role.USER, seq=5, at=0, message_id="u2", content=(
            m.TextPart(text="see"), m.ImagePart(url="data:image/png;base64,AAAA"), m.ImagePart(url="https://x/y.png"),
            m.FilePart(name="a.pdf", url="https://x/a.pdf"), m.FilePart(name="b", file_id="f1"))),
    ]
    command = m.SendMessage(content="see", variables={"tz": "UTC", "n": 1}, output_schema={"type": "object"})
    async with backend(agent.url, key="k-secret", headers={"X-Team": "t"}, forward={"a": 1}) as made:
        settings = m.Settings(system="Be brief.", client_tools=MINE.client_tools)
        await played(made, command, history=history, settings=settings)
    [asked] = agent.asked
    told = [message.model_dump(exclude_none=True, by_alias=True) for message in asked.messages]
    assert [message["role"] for message in told] == [
        "system", "system", "user", "reasoning", "assistant", "tool", "user"]
    assert told[3]["encryptedValue"] == "sig"
    assert (told[4]["id"], told[4]["content"]) == ("a1", "hello")
    assert (told[5]["toolCallId"], told[5]["error"]) == ("c0", "failed")
    assert [part["type"] for part in told[6]["content"]] == ["text", "image", "image", "document", "document"]
    assert asked.thread_id == "sess_1"
    assert [tool.name for tool in asked.tools or ()] == ["mine"]
    assert [one.description for one in asked.context or ()][:2] == ["tz", "n"]
    assert asked.forwarded_props == {"a": 1}
    assert (agent.headers[0]["Authorization"], agent.headers[0]["X-Team"]) == ("Bearer k-secret", "t")


# -- the client's tools -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("answer", "told", "error"), [
    (m.ReturnResult(request_id="x", content="sunny"), "sunny", None),
    (m.ReturnResult(request_id="x", content="no", is_error=True), "no", "no"),
    (m.Withdraw(request_id="x"), "Tool call cancelled", "Tool call cancelled"),
])
async def test_a_clients_tool_is_asked_for_and_its_result_is_sent_with_the_next_run(
    agent: Server, answer: Any, told: str, error: str | None,
) -> None:
    agent.play(
        [START, *text("Wait. "), *call("c1", "mine", '{"city":"Rome"}'), *call("c2", "own", "{}"),
         result("c2", "ok"), END],
        [START, *text("Done.", "m2"), END],
    )
    async with backend(agent.url) as made:
        turn = await played(made, settings=MINE, answering=lambda ask, request_id: answer)
    [[ask]] = turn.asks
    assert isinstance(ask, m.ClientToolAsk)
    assert (ask.call.call_id, ask.call.input) == ("c1", {"city": "Rome"})
    assert turn.text == "Wait. Done."
    first, second = agent.asked
    assert first.thread_id == second.thread_id
    assert first.run_id != second.run_id
    *_, assistant, owned, back = second.messages
    assert (assistant.id, [made.id for made in assistant.tool_calls or ()]) == ("m1", ["c1", "c2"])  # type: ignore[union-attr]
    assert (owned.tool_call_id, owned.content) == ("c2", "ok")  # type: ignore[union-attr]
    assert (back.tool_call_id, back.content, back.error) == ("c1", told, error)  # type: ignore[union-attr]


async def test_a_turn_has_so_many_runs(agent: Server) -> None:
    agent.play(*([START, *call(f"c{n}", "mine", "{}"), END] for n in range(3)))
    async with backend(agent.url, max_runs=2) as made:
        turn = await played(made, settings=MINE)
    assert len(agent.asked) == 2
    assert turn.stops[-1] == "max_steps"


async def test_a_turn_that_waited_when_the_server_stopped_goes_on(agent: Server) -> None:
    kept: dict[str, Any] = {}
    agent.play([START, *call("c1", "mine", "{}"), *call("c2", "pay", "{}"), interrupted("i1", tool_call_id="c2")])

    class Stopped(Turn):
        async def ask(self, *asks: Any, scope_id: str = "root") -> Any:
            Stopped.asked = asks
            raise asyncio.CancelledError

    before = Stopped("pay", metadata=kept, settings=MINE)
    async with backend(agent.url) as made:
        with pytest.raises(asyncio.CancelledError):
            await play(made, before)
    agent.play([START, result("c2", "paid"), *text("Done.", "m9"), END])
    after = Turn("pay", metadata=kept, settings=MINE, history=before.view.entries)
    after.asked = Stopped.asked
    after.grammar = before.grammar
    answers = [m.ReturnResult(request_id="a", content="sunny"), m.DecidePermission(request_id="b", granted=True)]
    async with backend(agent.url) as made:
        await record_all(made.resume(after, answers), after)
    assert (after.results, after.text) == (["sunny", "paid"], "Done.")
    assert [one.model_dump(exclude_none=True) for one in agent.asked[-1].resume or ()] == [
        {"interrupt_id": "i1", "status": "resolved", "payload": {"approved": True}}]
    assert agent.asked[-1].messages[-1].content == "sunny"
    with pytest.raises(Interrupted, match="was forgotten"):
        async with backend(agent.url) as made:
            await record_all(made.resume(after, answers), after)


# -- interrupts -------------------------------------------------------------------------------------------------------

def interrupted(name: str, **more: Any) -> Any:
    waits = Interrupt(id=name, reason="tool_call" if "tool_call_id" in more else "input_required", **more)
    return END.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=[waits])})


@pytest.mark.parametrize(("granted", "results"), [(True, ["paid"]), (False, ["Tool call denied"])])
async def test_an_interrupt_about_a_call_asks_for_permission(agent: Server, granted: bool, results: list[str]) -> None:
    agent.play(
        [START, *call("c1", "pay", '{"sum":7}'), interrupted("i1", tool_call_id="c1", message="Pay 7?")],
        [START, *([result("c1", "paid")] if granted else []), *text("Well.", "m2"), END],
    )
    answer = m.DecidePermission(request_id="x", granted=granted, reason=None if granted else "too dear")
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: answer)
    [[ask]] = turn.asks
    assert isinstance(ask, m.PermissionAsk)
    assert (ask.call.name, ask.description) == ("pay", "Pay 7?")
    assert turn.results == results
    assert turn.stops == ["tool_use", "end_turn"]
    [resumed] = agent.asked[1].resume or ()
    assert resumed.payload == ({"approved": True} if granted else {"approved": False, "reason": "too dear"})


@pytest.mark.parametrize(("schema", "answer", "payload"), [
    (None, m.AnswerQuestion(request_id="x", custom={"0": "blue"}), "blue"),
    ({"type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}},
     m.AnswerQuestion(request_id="x", selections={"0": (1,)}), {"colour": "blue"}),
    ({"type": "boolean"}, m.AnswerQuestion(request_id="x", selections={"0": (0,)}), True),
    ({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
     m.AnswerQuestion(request_id="x", custom={"0": "7"}), {"n": 7}),
    (None, m.ReturnResult(request_id="x", content="words"), "words"),
    (None, m.Withdraw(request_id="x"), None),
])
async def test_another_interrupt_is_a_question(agent: Server, schema: Any, answer: Any, payload: Any) -> None:
    agent.play([START, interrupted("i1", message="Which?", response_schema=schema)], [START, *text("So be it."), END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: answer)
    [[ask]] = turn.asks
    assert isinstance(ask, m.QuestionAsk)
    assert ask.questions[0].question == "Which?"
    [resumed] = agent.asked[1].resume or ()
    assert (resumed.interrupt_id, resumed.payload) == ("i1", payload)
    assert resumed.status == ("cancelled" if isinstance(answer, m.Withdraw) else "resolved")


# -- what is remembered -----------------------------------------------------------------------------------------------

async def test_state_and_ids_are_carried_along(agent: Server) -> None:
    kept: dict[str, Any] = {"colour": "red", m.PRIVATE: {"other": 1}}
    agent.play(
        [START, agui.StateSnapshotEvent(snapshot={"n": 1, "list": []}), *text("one"),
         agui.StateDeltaEvent(delta=[{"op": "add", "path": "/list/-", "value": "x"}]), END],  # type: ignore[list-item]
        [START.model_copy(update={"thread_id": "theirs"}), *text("two", "m2"), END], [START, END],
    )
    async with backend(agent.url) as made:
        first = await played(made, metadata=kept)
        second = await played(made, metadata=kept, history=first.view.entries)
        await played(made, metadata=kept)
    assert kept["colour"] == "red"
    assert kept[m.PRIVATE]["other"] == 1
    assert [asked.state for asked in agent.asked] == [{}, {"n": 1, "list": ["x"]}, {"n": 1, "list": ["x"]}]
    assert agent.asked[1].messages[0].id == "m1"
    assert [asked.thread_id for asked in agent.asked] == ["sess_1", "sess_1", "theirs"]
    assert [event.topic for event in first.all(m.CustomEvent)] == ["agui.state", "agui.state"]
    assert second.text == "two"
    async with backend(agent.url.replace("127.0.0.1", "localhost")) as elsewhere:
        agent.play([START, END])
        await played(elsewhere, metadata=kept)
    assert (agent.asked[-1].state, agent.asked[-1].thread_id) == ({}, "sess_1")


async def test_state_without_measure_is_not_remembered(agent: Server) -> None:
    kept: dict[str, Any] = {}
    agent.play([START, agui.StateSnapshotEvent(snapshot="x" * 2_000_000), END])
    async with backend(agent.url) as made:
        await played(made, metadata=kept)
    assert "state" not in kept[m.PRIVATE]["agui"]


# -- what breaks ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("run", "error", "words"), [
    ([START, *text("so"), agui.RunErrorEvent(message="out of k-secret", code="E")], BackendFailed, r"out of \*\*\*"),
    ([START, *text("so far")], BackendFailed, "stopped without finishing"),
    ([], BackendFailed, "stopped without finishing"),
    (["data: nonsense\n\n"], BackendFailed, "cannot be read"),
    (["data: {}\n\n"], BackendFailed, "cannot be read"),
    ([START, agui.StateDeltaEvent(delta=[{"op": "remove", "path": "/nothing"}]), END], BackendFailed, "does not fit"),  # type: ignore[list-item]
    ([START, END.model_copy(update={"outcome": RunFinishedCancelledOutcome()})], Interrupted, "was cancelled"),
    (web.Response(status=429, text="slow down, k-secret"), RateLimited, r"answered 429: slow down, \*\*\*"),
    (web.Response(status=302, headers={"Location": "http://elsewhere"}), BackendFailed, "with a redirect"),
    (web.Response(text="hello"), BackendFailed, "not with a stream of events"),
])
async def test_a_run_that_fails(agent: Server, run: Any, error: type[GatewayError], words: str) -> None:
    agent.play(run)
    async with backend(agent.url, key="k-secret") as made:
        turn = Turn()
        with pytest.raises(error, match=words):
            await record_all(made.run(turn), turn)


async def test_nobody_there_and_nobody_speaking(agent: Server) -> None:
    async with backend("http://127.0.0.1:1/agent") as made:
        with pytest.raises(BackendFailed, match="cannot be reached"):
            await played(made)
    agent.play(iter([encoded(START), None]))
    async with backend(agent.url, idle_seconds=0.2) as made:
        with pytest.raises(TimedOut):
            await played(made)


async def test_an_interrupted_turn_hangs_up(agent: Server) -> None:
    agent.play(iter([encoded(START, *text("one")[:2]), None]))
    async with backend(agent.url) as made:
        turn = Turn()
        async with aclosing(made.run(turn)) as speech:
            async for output in speech:
                if any(isinstance(event, m.BlockDelta) for event in events_of(output)):
                    break
        await asyncio.wait_for(agent.left.wait(), 30)


async def test_a_conversation_is_not_compacted_from_here(agent: Server) -> None:
    async with backend(agent.url) as made:
        turn = Turn()
        turn.command = m.Compact()
        with pytest.raises(Unsupported, match="cannot be compacted"):
            await play(made, turn)
