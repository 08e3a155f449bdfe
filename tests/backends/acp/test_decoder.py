"""What an ACP agent tells becomes lawful events that say the same, whatever the order."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.acp.decoder import AcpDecoder, tool_call_content
from gateway.backends.acp.turn import option_for
from gateway.backends.acp.wire import PermissionOption, PermissionParams, PromptResult, SessionUpdate
from gateway.backends.tool_executor import CALL_DENIED
from gateway.ids import make_mint
from gateway.ports import ParsedFrame, RemoteAsk, RemoteTurnEnd
from tests.support.backends.acp_turns import call, printed, progress, text
from tests.support.backends.turn_driver import FakeTurn

END = PromptResult()


def heard(*told: Any, end: PromptResult = END) -> FakeTurn:
    """The updates heard by one hearing, held to the grammar."""
    turn, hearing = FakeTurn(m.SendMessage(content="x")), AcpDecoder(make_mint(""))
    frames = [*(updated(step) for step in told), end]
    for said in (*hearing.begin(), *(item for frame in frames for item in hearing.feed(ParsedFrame("", frame)))):
        if not isinstance(said, RemoteTurnEnd):
            turn.record(said)  # type: ignore[arg-type]
    turn.record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    return turn


def updated(step: list[Any]) -> SessionUpdate:
    return msgspec.convert(step[1], SessionUpdate)


def blocks(turn: FakeTurn) -> list[tuple[str, str]]:
    return [(event.kind.value, event.text or "") for event in turn.all(m.BlockEnded)]


def test_words_of_one_kind_are_one_block() -> None:
    turn = heard(text("a"), text("b"), text("c", kind="agent_thought_chunk"), text("d"), text("e", messageId="m2"))
    assert blocks(turn) == [("text", "ab"), ("thinking", "c"), ("text", "d"), ("text", "e")]


def test_pictures_links_and_resources_in_a_message() -> None:
    chunk = {"sessionUpdate": "agent_message_chunk"}
    turn = heard(
        ["update", {**chunk, "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}],
        ["update", {**chunk, "content": {"type": "resource_link", "name": "notes", "uri": "file:///n"}}],
        ["update", {**chunk, "content": {"type": "resource", "resource": {"uri": "file:///n", "text": " inside"}}}],
        ["update", {**chunk, "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}}],
        ["update", {**chunk, "content": "no block"}],
    )
    assert turn.all(m.BlockEnded)[0].image.url == "data:image/png;base64,AAAA"
    assert turn.text == "[notes](file:///n) inside"


def test_a_plan_is_a_data_block_and_a_title_the_sessions() -> None:
    turn = heard(
        text("so"), ["update", {"sessionUpdate": "plan", "entries": [
            {"content": "Look", "priority": "high", "status": "completed"}, {"content": "Leap", "status": "pending"},
        ]}], ["update", {"sessionUpdate": "session_info_update", "title": "A walk"}],
    )
    data = turn.all(m.BlockEnded)[1].data
    assert data.type == "plan_status"
    assert [step["title"] for step in data.content["steps"]] == ["Look", "Leap"]
    assert [step["status"] for step in data.content["steps"]] == ["completed", "pending"]
    assert [event.title for event in turn.all(m.SessionUpdated)] == ["A walk"]


def test_a_call_is_told_when_its_input_is_whole() -> None:
    early = heard(call("c", rawInput={"path": "a"}), text("meanwhile"), progress("c", status="completed"))
    assert [event.call.permission for event in early.all(m.BlockEnded) if event.call] == ["allow"]
    assert [kind for kind, _ in blocks(early)] == ["tool_use", "text"]
    late = heard(call("c"), text("meanwhile"), progress("c", rawInput={"path": "a"}), progress("c", status="failed"))
    assert [kind for kind, _ in blocks(late)] == ["text", "tool_use"]
    for turn in (early, late):
        made = next(event.call for event in turn.all(m.BlockEnded) if event.call)
        assert (made.name, made.display_name, made.input) == ("read", "Look", {"path": "a"})
    assert [event.is_error for event in late.all(m.ToolReturned)] == [True]


def test_a_call_that_wants_permission_says_so_even_beside_others() -> None:
    hearing, said = AcpDecoder(make_mint("")), list[Any]()
    for step in (call("a", rawInput={"n": 1}), call("b", rawInput={"n": 2})):
        said += hearing.feed(ParsedFrame("", updated(step)))
    assert said == []
    assert hearing.holds
    for name in "ab":
        wanted = PermissionParams(session_id="s", tool_call=SessionUpdate(tool_call_id=name))
        *told, asked = hearing.feed(ParsedFrame("", wanted, f"request {name}"))
        assert isinstance(asked, RemoteAsk) and isinstance(asked.ask, m.PermissionAsk)
        assert (asked.ref, asked.ask.call.permission) == (f"request {name}", "ask")
        assert told[-1].call == asked.ask.call  # type: ignore[union-attr]
    assert not hearing.holds


def test_what_a_tool_prints_is_told_as_it_grows() -> None:
    turn = heard(
        call("c", status="in_progress", content=printed("one")), progress("c", content=printed("one", "two")),
        progress("c", content=printed("other")), progress("c", status="completed", content=printed("all of it")),
    )
    assert [event.delta for event in turn.all(m.ToolOutput)] == ["one", "\ntwo"]
    assert turn.results == ["all of it"]


def test_calls_side_by_side_come_back_one_by_one() -> None:
    turn = heard(
        call("a", status="in_progress"), call("b", status="in_progress"),
        progress("b", status="completed", rawOutput="B"),
        text("b is done"), progress("a", status="completed", rawOutput={"found": 1}), text("a, too"),
    )
    assert turn.results == ["B", '{"found":1}']
    assert [len(entry.content) for entry in turn.view.entries if entry.role is m.Role.ASSISTANT] == [2, 1, 1]


def test_a_call_that_comes_again_is_another_call() -> None:
    turn = heard(*(step for n in range(2) for step in (call("c", status="completed", rawOutput=str(n)),)))
    assert turn.results == ["0", "1"]
    assert heard(progress("never seen", status="completed")).results == [""]


def test_how_a_turn_ends() -> None:
    for word, reason in {
        "end_turn": "end_turn", "max_tokens": "max_tokens", "max_turn_requests": "max_steps", "refusal": "refusal",
        "cancelled": "interrupted", "tomorrow": "end_turn",
    }.items():
        assert heard(text("a"), end=PromptResult(stop_reason=word)).stops == [reason]
        after_work = heard(call("c", status="completed"), end=PromptResult(stop_reason=word)).stops
        assert after_work == (["tool_use"] if reason == "end_turn" else ["tool_use", reason])
    spent = msgspec.convert({"usage": {"inputTokens": 5, "outputTokens": 2, "cachedReadTokens": 3}}, PromptResult)
    assert heard(end=spent).all(m.MessageEnded)[0].usage.cache_read_tokens == 3


def test_results() -> None:
    diff = {"type": "diff", "path": "/a", "oldText": "x\n", "newText": "y\n"}
    assert tool_call_content([diff], None) == "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y"
    assert tool_call_content([{**diff, "newText": "y" * 300_000}], None) == "/a was changed"
    picture = {"type": "content", "content": {"type": "image", "uri": "https://x/p.png", "mimeType": "image/png"}}
    assert tool_call_content([*printed("see"), picture], None) == (
        m.TextPart(text="see"), m.ImagePart(url="https://x/p.png", media_type="image/png"))
    assert tool_call_content([{"type": "terminal", "terminalId": "t"}, 7, None], "raw") == "raw"
    assert tool_call_content("odd", None) == ""


def test_options() -> None:
    always = [
        PermissionOption(option_id="a", kind="allow_always"),
        PermissionOption(option_id="r", kind="reject_always"),
    ]
    once = [
        PermissionOption(option_id="A", kind="allow_once"),
        PermissionOption(option_id="R", kind="reject_once"),
        *always,
    ]
    assert (option_for(once, True), option_for(once, False), option_for(once, None)) == ("A", "R", None)
    assert (option_for(always, True), option_for(always, False)) == ("a", "r")
    assert (option_for([], True), option_for([PermissionOption(option_id="a", kind="allow_once")], False)) == (
        None,
        None,
    )


# -- whatever the order -----------------------------------------------------------------------------------------------

ids = st.sampled_from(["a", "b", "c"])
statuses = st.sampled_from(["pending", "in_progress", "completed", "failed", None])
inputs = st.none() | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2) | st.text(max_size=3)
contents = st.none() | st.lists(st.text(max_size=5), max_size=2).map(lambda words: printed(*words))
updates = st.one_of(
    st.builds(text, st.text(max_size=5), messageId=st.sampled_from([None, "m1", "m2"])),
    st.builds(text, st.text(max_size=5), kind=st.just("agent_thought_chunk")),
    st.builds(call, ids, status=statuses, rawInput=inputs, content=contents),
    st.builds(progress, ids, status=statuses, rawInput=inputs, rawOutput=inputs, content=contents),
    st.just(["update", {"sessionUpdate": "plan", "entries": []}]),
    st.sampled_from(["available_commands_update", "current_mode_update", "user_message_chunk", "usage_update"]).map(
        lambda kind: ["update", {"sessionUpdate": kind}]),
)


@given(st.lists(updates, max_size=30), st.sampled_from(["end_turn", "max_tokens", "refusal"]))
def test_whatever_is_told_is_lawful_and_says_the_same(told: list[Any], stop: str) -> None:
    turn = heard(*told, end=PromptResult(stop_reason=stop))
    chunks = [step[1] for step in told if step[1]["sessionUpdate"].endswith("_chunk") and "content" in step[1]]
    for kind, word in (("agent_message_chunk", "text"), ("agent_thought_chunk", "thinking")):
        said = "".join(chunk["content"]["text"] for chunk in chunks if chunk["sessionUpdate"] == kind)
        assert "".join(whole for of, whole in blocks(turn) if of == word) == said
    assert said_in(turn) == "".join(c["content"]["text"] for c in chunks if c["sessionUpdate"] == "agent_message_chunk")
    assert [event.is_error for event in turn.all(m.ToolReturned)] == ends(told)


def said_in(turn: FakeTurn) -> str:
    """What a reader of the history finds."""
    return "".join(m.text_of(entry.content) for entry in turn.view.entries if entry.role is m.Role.ASSISTANT)


def ends(told: list[Any]) -> list[bool]:
    """Whether each call failed, in the order they came back; an id that comes again is another call, and what is left
    open at the end has failed."""
    ended, left = list[bool](), set[str]()
    for _, update in told:
        if (call_id := update.get("toolCallId")) is not None:
            left.add(call_id)
            if update["status"] in ("completed", "failed"):
                ended.append(update["status"] == "failed")
                left.discard(call_id)
    return ended + [True] * len(left)


def test_a_request_for_permission_waits_until_it_is_answered() -> None:
    hearing = AcpDecoder(make_mint(""))
    wanted = PermissionParams(session_id="s", tool_call=SessionUpdate(tool_call_id="c", title="Look"))
    *_, asked = hearing.feed(ParsedFrame("", wanted, "7"))
    assert isinstance(asked, RemoteAsk) and hearing.paused
    assert [event.status for event in hearing.suspend() if isinstance(event, m.ToolStatusChanged)] == ["awaiting_input"]
    hearing.on_answer(asked, m.DecidePermission(request_id="", granted=False))
    assert not hearing.paused
    *said, ended = hearing.feed(ParsedFrame("", PromptResult()))
    assert [event.content for event in said if isinstance(event, m.ToolReturned)] == [CALL_DENIED]
    assert ended == RemoteTurnEnd()


def test_the_result_of_a_prompt_ends_the_turn() -> None:
    cancelled = AcpDecoder(make_mint("")).feed(ParsedFrame("", PromptResult(stop_reason="cancelled")))
    assert cancelled[-1] == RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)
    assert AcpDecoder(make_mint("")).feed(ParsedFrame("", {"unknown": 1})) == []


def test_what_an_agent_that_stops_leaves_open_is_ended() -> None:
    hearing = AcpDecoder(make_mint(""))
    hearing.feed(ParsedFrame("", updated(call("c", status="in_progress"))))
    ends = hearing.end()
    assert [event.is_error for event in ends if isinstance(event, m.ToolReturned)] == [True]
    assert isinstance(ends[-1], m.MessageEnded) and ends[-1].outcome is m.Outcome.FAILED
