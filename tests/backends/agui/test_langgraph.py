"""Interrupts as LangGraph tells them: a custom event before the end of the run, and a value of any shape."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from ag_ui.core import Interrupt as Named
from ag_ui.core import RunFinishedInterruptOutcome, RunFinishedSuccessOutcome
from ag_ui.core import events as agui

import gateway.model as m
from gateway.backends.agui.langgraph import choices_of, question_text
from gateway.backends.agui.wire import RunInterrupt
from tests.support.backends.agui_server import (
    END,
    START,
    Server,
    Turn,
    backend,
    call,
    played,
    result,
    server,
    text,
)
from tests.support.backends.turn_driver import play, record_all

ROME = m.AnswerQuestion(request_id="x", custom={"0": "Rome"})


@pytest.fixture
async def agent() -> AsyncIterator[Server]:
    async with server() as made:
        yield made


def announced(value: Any, name: str | None = "i1", **more: Any) -> Any:
    """As the Python integration sends it: what is no text is JSON in a text, and the id is in its own event."""
    raw = {"value": value, "id": name, "response_schema": None} if name else None
    told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return agui.CustomEvent(name="on_interrupt", value=told, raw_event=raw, **more)


def named(*interrupts: tuple[str, Any]) -> Any:
    """The end of a run whose outcome names LangGraph's interrupts."""
    told = [Named(id=name, reason="langgraph:interrupt", metadata={"langgraph": {"raw": value, "ns": None}})
            for name, value in interrupts]
    return END.model_copy(update={"outcome": RunFinishedInterruptOutcome(interrupts=told)})


def commands(agent: Server) -> list[Any]:
    return [asked.forwarded_props for asked in agent.asked]


def question(ask: m.AnyAsk) -> str:
    assert isinstance(ask, m.QuestionAsk)
    return ask.questions[0].question


@pytest.mark.parametrize("value", ["Which city?", {"question": "Which city?"}, {"query": "Which city?"}])
async def test_a_run_that_announced_an_interrupt_is_asked_about_and_resumed(agent: Server, value: Any) -> None:
    agent.play([START, announced(value), END], [START, *text("Rome it is."), END])
    async with backend(agent.url, forward={"a": 1}) as made:
        turn = await played(made, answering=lambda ask, request_id: ROME)
    [[ask]] = turn.asks
    assert question(ask) == "Which city?"
    assert turn.text == "Rome it is."
    assert commands(agent) == [{"a": 1}, {"a": 1, "command": {"resume": "Rome"}}]
    assert [asked.resume for asked in agent.asked] == [None, None]
    assert turn.all(m.CustomEvent) == []


@pytest.mark.parametrize(("answer", "returned"), [
    (ROME, "Rome"), (m.ReturnResult(request_id="x", content="words"), "words"),
    (m.Withdraw(request_id="x"), {"__agui_cancelled__": True, "interrupt_id": "i1"}),
])
async def test_what_interrupt_returns_in_the_graph(agent: Server, answer: Any, returned: Any) -> None:
    agent.play([START, announced("Which?"), END], [START, END])
    async with backend(agent.url) as made:
        await played(made, answering=lambda ask, request_id: answer)
    assert commands(agent)[1] == {"command": {"resume": returned}}


async def test_several_interrupts_are_answered_by_their_ids(agent: Server) -> None:
    agent.play([START, announced({"question": "A?"}, "ia"), announced({"question": "B?"}, "ib"), END], [START, END])
    answers = {"A?": "one", "B?": "two"}
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: m.AnswerQuestion(
            request_id=request_id, custom={"0": answers[question(ask)]}))
    assert [len(asks) for asks in turn.asks] == [2]
    assert commands(agent)[1] == {"command": {"resume": {"ia": "one", "ib": "two"}}}


async def test_interrupts_without_ids_are_asked_about_one_by_one(agent: Server) -> None:
    agent.play(
        [START, announced("A?", None), announced("B?", None), END], [START, announced("B?", None), END], [START, END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: m.AnswerQuestion(
            request_id=request_id, custom={"0": question(ask).lower()}))
    assert [[question(ask) for ask in asks] for asks in turn.asks] == [["A?"], ["B?"]]
    assert commands(agent)[1:] == [{"command": {"resume": "a?"}}, {"command": {"resume": "b?"}}]


async def test_an_interrupt_that_the_outcome_names_too_is_asked_about_once(agent: Server) -> None:
    agent.play([START, announced({"question": "A?"}, "ia"), named(("ia", {"question": "A?"}))], [START, END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: ROME)
    assert [[question(ask) for ask in asks] for asks in turn.asks] == [["A?"]]
    assert commands(agent) == [{}, {}]
    [resumed] = agent.asked[1].resume or ()
    assert (resumed.interrupt_id, resumed.payload) == ("ia", "Rome")


async def test_several_that_the_outcome_names_are_answered_by_the_command(agent: Server) -> None:
    agent.play([START, named(("ia", {"question": "A?"}), ("ib", "B?"))], [START, END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: ROME)
    assert [[question(ask) for ask in asks] for asks in turn.asks] == [["A?", "B?"]]
    assert commands(agent)[1] == {"command": {"resume": {"ia": "Rome", "ib": "Rome"}}}
    assert agent.asked[1].resume is None


async def test_a_run_that_says_it_succeeded_waits_for_nothing(agent: Server) -> None:
    agent.play([START, announced("Which?"), END.model_copy(update={"outcome": RunFinishedSuccessOutcome()})])
    async with backend(agent.url) as made:
        turn = await played(made)
    assert turn.asks == []
    assert [(event.topic, event.payload) for event in turn.all(m.CustomEvent)] == [
        ("on_interrupt", {"value": "Which?"})
    ]


async def test_an_interrupt_of_a_sub_agent_that_has_ended_opens_no_scope(agent: Server) -> None:
    agent.play([START, announced("Which?", subagent_run_id="tools:1"), END], [START, END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: ROME)
    assert len(turn.asks) == 1
    assert turn.all(m.ScopeOpened) == []


async def test_a_tool_that_asks_comes_back_in_the_next_run(agent: Server) -> None:
    """The canonical tool of LangGraph's: it calls `interrupt()`, and its call is told again when it has returned."""
    made_once = call("c1", "human_assistance", '{"query": "What now?"}')
    agent.play([START, *made_once, announced({"query": "What now?"}), END],
               [START, *made_once, result("c1", "go on"), *text("Well.", "m2"), END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: ROME)
    assert turn.results == ["go on"]
    assert [event.call.call_id for event in turn.all(m.BlockEnded) if event.call] == ["c1"]


async def test_a_turn_that_waited_when_the_server_stopped_goes_on(agent: Server) -> None:
    kept: dict[str, Any] = {}
    agent.play([START, *call("c1", "human_assistance", "{}"), announced({"query": "What now?"}), END])

    class Stopped(Turn):
        async def ask(self, *asks: Any, scope_id: str = "root") -> Any:
            Stopped.asked = asks
            raise asyncio.CancelledError

    before = Stopped("hi", metadata=kept)
    async with backend(agent.url) as made:
        with pytest.raises(asyncio.CancelledError):
            await play(made, before)
    agent.play([START, result("c1", "go on"), *text("Well.", "m2"), END])
    after = Turn("hi", metadata=kept, history=before.view.entries)
    after.asked, after.grammar = Stopped.asked, before.grammar
    async with backend(agent.url) as made:
        await record_all(made.resume(after, [ROME]), after)
    assert (after.results, after.text) == (["go on"], "Well.")
    assert commands(agent)[-1] == {"command": {"resume": "Rome"}}


# -- calls that must be reviewed --------------------------------------------------------------------------------------

def action(to: str) -> dict[str, Any]:
    return {"name": "send_mail", "args": {"to": to}, "description": f"Mail to {to}?"}


REVIEW = {"action_requests": [action("bob"), action("ann")],
          "review_configs": [{"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject"]}]}


@pytest.mark.parametrize("by_outcome", [False, True])
async def test_calls_that_must_be_reviewed_are_permissions(agent: Server, by_outcome: bool) -> None:
    calls = [*call("c1", "send_mail", '{"to": "ann"}'), *call("c2", "send_mail", '{"to": "bob"}')]
    ends = [named(("i1", REVIEW))] if by_outcome else [announced(REVIEW), END]
    agent.play([START, *calls, *ends], [START, result("c1", "sent"), *text("Well.", "m2"), END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: m.DecidePermission(
            request_id=request_id, granted=ask.call.input == {"to": "ann"}, reason="not him"))
    [asks] = turn.asks
    told = [(ask.call.call_id, ask.description) for ask in asks if isinstance(ask, m.PermissionAsk)]
    assert told == [("c2", "Mail to bob?"), ("c1", "Mail to ann?")]
    payload = {"decisions": [{"type": "reject", "message": "not him"}, {"type": "approve"}]}
    if by_outcome:
        assert [one.payload for one in agent.asked[1].resume or ()] == [payload]
    else:
        assert commands(agent)[1] == {"command": {"resume": payload}}
    assert turn.results == ["sent", "Tool call denied"]


@pytest.mark.parametrize(("answer", "decision"), [
    (m.AnswerQuestion(request_id="x", selections={"0": (0,)}), {"type": "approve"}),
    (m.AnswerQuestion(request_id="x", selections={"0": (1,)}), {"type": "reject"}),
    (m.AnswerQuestion(request_id="x", custom={"0": "ask her first"}), {"type": "reject", "message": "ask her first"}),
    (m.ReturnResult(request_id="x", content="ok"), {"type": "approve"}),
    (m.Withdraw(request_id="x"), {"type": "reject"}),
])
async def test_a_call_that_was_not_told_is_asked_about_in_words(agent: Server, answer: Any, decision: Any) -> None:
    agent.play([START, announced({"action_requests": [{"name": "pay", "args": {"sum": 7}}]}), END], [START, END])
    async with backend(agent.url) as made:
        turn = await played(made, answering=lambda ask, request_id: answer)
    [[ask]] = turn.asks
    assert question(ask) == 'Allow pay {"sum":7}?'
    assert commands(agent)[1] == {"command": {"resume": {"decisions": [decision]}}}


async def test_who_writes_again_before_answering_is_asked_again(agent: Server) -> None:
    """The thread waits on: LangGraph announces its interrupt again instead of running."""
    agent.play([START, announced("Which?"), END], [START, *text("Done."), END])
    history = [
        m.HistoryEntry(role=m.Role.USER, content="hi", seq=1, at=0),
        m.HistoryEntry(role=m.Role.USER, content="well?", seq=2, at=0),
    ]
    async with backend(agent.url) as made:
        turn = await played(made, "well?", history=history, answering=lambda ask, request_id: ROME)
    assert (len(turn.asks), turn.text) == (1, "Done.")


# -- words ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("interrupt", "words", "choices"), [
    (RunInterrupt(id="i", message="M", announced={"question": "Q"}), "M", []),
    (RunInterrupt(id="i", announced={"question": "Right?", "llm_output": "a draft"}), "Right?\nllm_output: a draft",
     []),
    (RunInterrupt(id="i", announced={"text_to_revise": "a draft"}), "text_to_revise: a draft", []),
    (RunInterrupt(id="i", announced={"prompt": "Go?", "options": ["a", "b"], "tool_call_id": "c"}), "Go?", ["a", "b"]),
    (RunInterrupt(id="i", announced={"prompt": "Go?", "options": [1, 2]}), "Go?\noptions: [1,2]", []),
    (RunInterrupt(id="i", announced=[{"message": "One?"}]), "One?", []),
    (RunInterrupt(id="i", announced=["a", "b"]), '["a","b"]', []),
    (RunInterrupt(id="i", announced=7), "7", []),
    (RunInterrupt(id="i", announced={}, reason="why"), "why", []),
    (RunInterrupt(id="i", metadata={"langgraph": {"raw": "Q"}}, reason="why"), "Q", []),
    (RunInterrupt(id="i", metadata={"langgraph": 7}, reason="why"), "why", []),
    (RunInterrupt(id="i", metadata=7, reason="why"), "why", []),
])
def test_the_words_of_a_question_are_read_from_the_value(
    interrupt: RunInterrupt, words: str, choices: list[str]
) -> None:
    assert (question_text(interrupt), choices_of(interrupt)) == (words, choices)
