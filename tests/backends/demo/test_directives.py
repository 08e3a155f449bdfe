"""The demo agent: every directive, and what it does in every circumstance."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import gateway.model as m
from gateway.backends.demo.backend import HANDLERS, NEEDS_PEOPLE, NEEDS_TOOLS
from gateway.backends.demo.directive_parser import ARGUMENT_PARSERS
from gateway.errors import BackendFailed
from tests.support.backends.turn_driver import FakeTurn, demo, kinds, play, tell

PICK = m.ToolSpec(name="pick", parameters={
    "type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "note": {"type": "string"}},
    "required": ["n"],
})
CLIENT = m.Settings(client_tools=(PICK,))


def choosing(**tools: m.Permission) -> m.Settings:
    return m.Settings(tools=tools, client_tools=(PICK,))


async def test_it_says_what_was_said_word_by_word() -> None:
    turn = await tell("hello wide world")
    assert [event.delta for event in turn.all(m.BlockDelta)] == ["You ", "said: ", "hello ", "wide ", "world"]
    assert turn.text == "You said: hello wide world"
    [started] = turn.all(m.MessageStarted)
    assert (started.model, started.context_window) == ("demo-1", 200_000)
    assert turn.stops == [m.StopReason.END_TURN]
    assert turn.all(m.MessageEnded)[0].usage.input_tokens == 3
    assert turn.all(m.MessageEnded)[0].usage.output_tokens == 5


async def test_it_counts_pictures_and_files() -> None:
    content = (
        m.TextPart(text="look"),
        m.ImagePart(url="https://a/b.png"),
        m.ImagePart(url="data:,"),
        m.FilePart(name="a"),
    )
    assert (await tell(content)).text == "You said: look [2 images] [1 file]"
    assert (await tell((m.ImagePart(url="data:,"),))).text == "You said: [1 image]"


async def test_it_says_so_when_it_was_told_nothing() -> None:
    assert (await tell("")).text == "You said: (nothing)"


async def test_options_can_be_seen_in_the_reply() -> None:
    assert (await tell("ahoy", settings=m.Settings(options={"greeting": "Captain,"}))).text == "Captain, ahoy"
    assert (await tell("ahoy", settings=m.Settings(options={"mood": "loud"}))).text == "YOU SAID: AHOY"
    assert (await tell("ahoy", settings=m.Settings(options={"greeting": "", "mood": "plain"}))).text == "You said: ahoy"


async def test_a_delay_comes_before_every_word() -> None:
    sleeps: list[float] = []
    await tell("one two", backend=demo(sleeps, delay=0.2))
    assert sleeps == [0.2] * 4


async def test_unknown_directives_are_text() -> None:
    assert (await tell("/dance with me")).text == "You said: /dance with me"


async def test_every_directive_has_an_act() -> None:
    assert set(HANDLERS) == set(ARGUMENT_PARSERS)


async def test_think() -> None:
    turn = await tell("/think hard")
    thought, said = turn.all(m.BlockEnded)
    assert (thought.kind, thought.text, thought.signature) == ("thinking", "Let me think about that.", "demo-signature")
    assert said.text == "You said: hard"
    assert turn.all(m.MessageEnded)[0].usage.thinking_tokens == 5


async def test_a_tool_call_is_a_message_then_its_round_then_the_next_message() -> None:
    turn = await tell("/tool clock hi")
    assert turn.outline == [
        "turn.started", "message.started", "block.started.tool_use", "block.ended.tool_use", "message.ended",
        "tool.status.running", "tool.returned.builtin",
        "message.started", "block.started.text", "block.ended.text", "message.ended", "turn.ended.completed",
    ]
    assert turn.stops == [m.StopReason.TOOL_USE, m.StopReason.END_TURN]
    assert turn.text == "clock returned 2023-11-14T22:13:20+00:00\nYou said: hi"
    assert turn.all(m.ToolReturned)[0].duration_ms == 0


@pytest.mark.parametrize(("message", "text"), [
    ("/tool", "clock returned 2023-11-14T22:13:20+00:00"),
    ("/tool calc", "calc returned 42"),
    ('/tool calc {"expression": "2 ** 10"} now', "calc returned 1024\nYou said: now"),
    ('/tool calc {"expression": 3}', 'calc failed: calc: expression: 3 is not of type "string"'),
    ("/tool calc {}", 'calc failed: calc: "expression" is a required property'),
    ("/tool lathe", "I do not have the tool lathe."),
    ("/tool highlight", "I do not have the tool highlight."),
])
async def test_tool(message: str, text: str) -> None:
    assert (await tell(message)).text == text


async def test_the_search_tool_prints_while_it_runs() -> None:
    turn = await tell("/tool search")
    assert "tool.output" in turn.outline
    assert turn.text.startswith("search returned 1. Dragoman: A dragoman was")


async def test_what_the_session_did_not_enable_the_agent_does_not_have() -> None:
    turn = await tell("/tool calc and on", settings=choosing(clock=m.Permission.ALLOW))
    assert turn.text == "I do not have the tool calc.\nYou said: and on"
    assert not turn.results
    assert (await tell("/tool", settings=choosing())).text == "I do not have the tool clock."


async def test_a_tool_the_session_denies_is_called_in_vain() -> None:
    turn = await tell("/tool calc", settings=choosing(calc=m.Permission.DENY))
    assert turn.results == ["Tool call denied: the session does not allow it"]
    assert turn.all(m.ToolReturned)[0].is_error
    assert not turn.asks


async def test_a_client_tool_can_be_named() -> None:
    turn = await tell('/tool pick {"n": 9}', settings=CLIENT)
    assert turn.asks[0][0].call.input == {"n": 9}
    assert turn.text == "pick returned done by the client"


async def test_client_tool() -> None:
    turn = await tell("/client-tool", settings=CLIENT)
    [[ask]] = turn.asks
    assert isinstance(ask, m.ClientToolAsk)
    assert (ask.call.origin, ask.call.input) == (m.ToolOrigin.CLIENT, {"n": 3})
    assert turn.all(m.ToolReturned)[0].origin is m.ToolOrigin.CLIENT
    assert turn.text == "pick returned done by the client"


async def test_client_tool_with_an_input_of_ones_own() -> None:
    turn = await tell('/client-tool {"n": 8}', settings=CLIENT)
    assert turn.asks[0][0].call.input == {"n": 8}


async def test_client_tool_without_any() -> None:
    assert (await tell("/client-tool")).text == "The client has declared no tools."


async def test_provider_tool_comes_back_inside_its_message() -> None:
    turn = await tell("/provider-tool")
    assert turn.outline[1:6] == [
        "message.started", "block.started.tool_use", "block.ended.tool_use", "tool.returned.provider",
        "block.started.text",
    ]


async def test_permit_granted() -> None:
    turn = await tell("/permit")
    [[ask]] = turn.asks
    assert isinstance(ask, m.PermissionAsk)
    assert (ask.call.name, ask.call.permission, ask.description) == ("calc", m.Permission.ASK, "Run Calculator?")
    assert turn.text == "calc returned 42"


@pytest.mark.parametrize(("reason", "content"), [
    (None, "Tool call denied"), ("not today", "Tool call denied: not today"),
])
async def test_permit_denied(reason: str | None, content: str) -> None:
    turn = await tell("/permit", answering=lambda ask, request_id: m.DecidePermission(
        request_id=request_id, granted=False, reason=reason))
    assert turn.results == [content]
    assert turn.text == f"calc failed: {content}"


async def test_permit_asks_for_what_the_session_made_to_be_asked_for() -> None:
    turn = await tell("/permit", settings=choosing(calc=m.Permission.ALLOW, search=m.Permission.ASK))
    assert turn.asks[0][0].call.name == "search"
    turn = await tell("/permit", settings=choosing(calc=m.Permission.ALLOW))
    assert turn.text == "I have no tool that needs permission."


async def test_parallel_makes_three_calls_in_one_message_and_asks_once() -> None:
    turn = await tell("/parallel", settings=CLIENT)
    assert turn.outline[1:16] == [
        "message.started", *["block.started.tool_use", "block.ended.tool_use"] * 3, "message.ended",
        "tool.status.pending", "tool.status.pending", "tool.status.running", "tool.returned.builtin",
        "tool.status.awaiting_input", "tool.status.awaiting_input", "input.requested.permission",
    ]
    assert [type(ask) for ask in turn.asks[0]] == [m.PermissionAsk, m.ClientToolAsk]
    assert len(turn.results) == 3


async def test_parallel_with_what_there_is() -> None:
    turn = await tell("/parallel", settings=choosing(search=m.Permission.ALLOW))
    assert [call for call in turn.text.split() if call in ("search", "pick", "calc", "clock")] == ["search", "pick"]
    assert (await tell("/parallel", settings=m.Settings(tools={}))).text == "I have no tools to call."


async def test_ask() -> None:
    turn = await tell("/ask")
    [[ask]] = turn.asks
    assert [question.multi_select for question in ask.questions] == [False, True]
    assert ask.call.name == "AskUserQuestion"
    assert [one["multiSelect"] for one in ask.call.input["questions"]] == [False, True]
    assert turn.text == "AskUserQuestion returned Colour: Green; Fruits: Apple, Cherry"


async def test_ask_answered_in_free_words_or_nonsense() -> None:
    turn = await tell("/ask", answering=lambda ask, request_id: m.AnswerQuestion(
        request_id=request_id, selections={"0": (7,)}, custom={"1": "Quince"}, message="Thanks"))
    assert turn.results == ["Colour: no answer; Fruits: Quince; Thanks"]


async def test_ask_withdrawn() -> None:
    turn = await tell("/ask", answering=lambda ask, request_id: m.Withdraw(request_id=request_id))
    assert turn.results == ["Tool call cancelled"]
    assert "tool.status.cancelled" in turn.outline


async def test_fork() -> None:
    turn = await tell("/fork dig here")
    [opened], [there, back] = turn.all(m.ScopeOpened), turn.all(m.ScopeMessage)
    assert (opened.parent, opened.agent) == ("root", "demo")
    assert (there.sender, there.content) == ("root", "dig here")
    assert (back.recipient, back.content) == ("root", "I looked into: dig here")
    assert turn.outline[4:17] == [
        "message.ended", "tool.status.running", "scope.opened", "scope.status.running", "scope.message",
        "message.started", "block.started.text", "block.ended.text", "message.ended", "scope.message",
        "scope.status.idle", "scope.status.ended", "tool.returned.builtin",
    ]
    assert turn.text == "Agent returned I looked into: dig here\nYou said: dig here"


async def test_fork_ask_asks_in_the_childs_scope() -> None:
    turn = await tell("/fork-ask")
    [requested] = [record for record in turn.records if record.event.name == "input.requested"]
    assert requested.scope_id.startswith("scope_")
    assert "scope.status.blocked" in turn.outline
    assert turn.results[1] == "I looked into: nothing in particular (Colour: Green; Fruits: Apple, Cherry)"


async def test_continue() -> None:
    turn = await tell("/think /continue more")
    assert turn.stops == [m.StopReason.NEEDS_INPUT, m.StopReason.END_TURN]
    assert turn.text == "I went on.\nYou said: more"


async def test_continue_refused() -> None:
    turn = await tell("/continue more /tool", answering=lambda ask, request_id: m.ContinueTurn(
        request_id=request_id, proceed=False))
    assert turn.text == "I stopped."
    assert not turn.results


async def test_rollback() -> None:
    turn = await tell("/rollback")
    [[ask]] = turn.asks
    assert [sorted(option) for option in ask.options] == [["action", "id", "target"]] * 2
    assert turn.text == "I rolled back to: step."
    turn = await tell("/rollback", answering=lambda ask, request_id: m.RollBack(request_id=request_id))
    assert turn.text == "I rolled nothing back."


@pytest.mark.parametrize("name", NEEDS_TOOLS)
async def test_a_plan_is_made_without_tools_and_questions(name: str) -> None:
    turn = await tell(m.SendMessage(content=f"/{name} hello", mode="planning"), settings=CLIENT)
    assert turn.text.startswith(f"I only plan, and leave out /{name}.")
    assert (turn.asks, turn.results, len(turn.all(m.MessageStarted))) == ([], [], 1)


@pytest.mark.parametrize("name", NEEDS_PEOPLE)
async def test_nobody_is_asked_where_nobody_is(name: str) -> None:
    turn = await tell(m.SendMessage(content=f"/{name} hello", headless=True))
    assert turn.text == f"I am on my own, and leave out /{name}.\nYou said: hello"
    assert (turn.asks, turn.all(m.ScopeOpened)) == ([], [])


async def test_fail_breaks_in_the_middle_of_a_block() -> None:
    turn = FakeTurn(m.SendMessage(content="/fail"))
    with pytest.raises(BackendFailed, match="middle of a sentence"):
        await play(demo(), turn)
    assert turn.events[-1].delta == "to "


async def test_fail_start_breaks_before_anything_is_said() -> None:
    turn = FakeTurn(m.SendMessage(content="/fail-start"))
    with pytest.raises(BackendFailed, match="before it said anything"):
        await play(demo(), turn)
    assert turn.outline == ["turn.started"]


async def test_refuse_and_max_tokens_end_the_turn() -> None:
    turn = await tell("/refuse /tool and more")
    assert (turn.stops, turn.text) == ([m.StopReason.REFUSAL], "I would rather not answer that.")
    turn = await tell("/max-steps one two /tool")
    assert (turn.stops, turn.text) == ([m.StopReason.MAX_STEPS], "You said: one two")
    turn = await tell("/max-tokens one two /tool")
    assert (turn.stops, turn.text) == ([m.StopReason.MAX_TOKENS], "You said: one")


async def test_slow() -> None:
    sleeps: list[float] = []
    turn = await tell("/slow 3 done", backend=demo(sleeps))
    assert sleeps == [0.05] * 3
    assert turn.text == "1 2 3 You said: done"


async def test_burst() -> None:
    turn = await tell("/burst 1000 done")
    assert turn.text == "word " * 1000 + "You said: done"


async def test_annotate_covers_every_topic_that_is_an_agents_own_at_the_end_of_the_message() -> None:
    turn = await tell("/annotate hi")
    own = set(m.AnnotationTopic) - {m.AnnotationTopic.MEMORY_REFS}  # which the server announces, and no agent invents
    assert {event.topic for event in turn.all(m.MessageAnnotated)} == own
    assert turn.outline[-3] == "message.annotated.recommended"
    assert turn.all(m.CustomEvent)[0].payload == {"topics": len(own)}


@pytest.mark.parametrize(("message", "key"), [("/bridge", "bridge"), ("/ui", "ui")])
async def test_bridge_and_ui(message: str, key: str) -> None:
    [returned] = (await tell(message)).all(m.ToolReturned)
    assert set(returned.meta) == {key}


async def test_image() -> None:
    [picture, _] = (await tell("/image")).all(m.BlockEnded)
    assert picture.image.url.startswith("data:image/png;base64,")


async def test_plan() -> None:
    turn = await tell("/plan")
    assert [event.data.type for event in turn.all(m.BlockEnded) if event.data] == [
        "planning_enter", "mode_change", "plan_status", "planning_exit",
    ]
    assert turn.all(m.NoticePosted)


async def test_title() -> None:
    turn = await tell("/title  A good name \nhello")
    assert turn.all(m.SessionUpdated)[0].title == "A good name"
    assert turn.text == "You said: hello"


HISTORY = [
    m.HistoryEntry(role=m.Role.USER, content="one two", seq=1, at=1.0),
    m.HistoryEntry(role=m.Role.USER, content="go", seq=2, at=1.0),
]


async def test_compact() -> None:
    turn = await tell("/compact", history=HISTORY)
    [compacted] = turn.all(m.SessionCompacted)
    assert (compacted.archived, compacted.tokens_before, compacted.trigger) == (2, 3, m.CompactionTrigger.MANUAL)
    assert compacted.summary == "2 messages were exchanged. The last one was: go"


async def test_the_compact_command_compacts_without_a_word() -> None:
    turn = await tell(m.Compact(trigger=m.CompactionTrigger.AUTO), history=HISTORY)
    assert turn.outline == ["turn.started", "session.compacted", "turn.ended.completed"]
    assert turn.all(m.SessionCompacted)[0].trigger is m.CompactionTrigger.AUTO


async def test_json() -> None:
    assert json.loads((await tell("/tool /json")).text) == {"ok": True}


async def test_a_schema_is_obeyed_with_or_without_the_directive() -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["a", "b"]}
    for message in ("/json hi", "hi"):
        turn = await tell(m.SendMessage(content=message, output_schema=schema))
        assert json.loads(turn.text) == {"a": 0, "b": "hi"}


async def test_all_that_a_backend_may_say_can_be_brought_about_by_typing() -> None:
    said: set[tuple[str, str]] = set()
    for name in set(HANDLERS) - {"fail", "fail-start"}:
        turn = await tell(f"/{name} search", settings=CLIENT)
        said |= kinds(turn.events)
    said |= kinds((await tell("/ask", answering=lambda ask, request_id: m.Withdraw(request_id=request_id))).events)
    wanted = {(kind.name, variant) for kind in m.BACKEND_EVENTS for variant in kind.variants or ("",)}
    assert wanted - said == {
        ("tool.status", "done"),     # tool.returned says it
        ("tool.status", "error"),    # tool.returned says it
        ("scope.status", "archived"),  # a person's word, long after the turn
        ("message.annotated", "memory_refs"),  # the engine's word, about memories that there are
        ("block.ended", "torn"),     # the engine's word when /fail or an interruption tears a call
    }


async def test_closing_the_turn_early_leaves_nothing_behind() -> None:
    """An interrupted turn's generator is closed; so are all the generators inside it."""
    turn = FakeTurn(m.SendMessage(content="/parallel /fork-ask"), settings=CLIENT)
    before = asyncio.all_tasks()
    said: AsyncIterator[Any] = demo().run(turn)
    async for event in said:
        if isinstance(getattr(event, "event", event), m.ToolReturned):
            break
    await said.aclose()  # type: ignore[attr-defined]
    assert asyncio.all_tasks() == before


