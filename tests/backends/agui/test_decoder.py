"""What an AG-UI agent tells becomes lawful events that say the same, wherever it is cut and whatever the order."""

import re
from typing import Any

import orjson
from ag_ui.core import RunFinishedCancelledOutcome, RunFinishedInterruptOutcome
from ag_ui.core import events as agui
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from gateway.backends.agui.decoder import AguiDecoder
from gateway.backends.agui.wire import decode_frame
from gateway.client import SseDecoder
from gateway.ids import make_mint
from gateway.ports import DecodedItem, RemoteAsk, RemoteTurnEnd, ScopedEvent
from tests.support.backends.agui_server import END, START, call, encoded, result, text
from tests.support.backends.turn_driver import FakeTurn

MINE = frozenset({"mine"})


def heard(*events: Any, pieces: list[bytes] | None = None) -> FakeTurn:
    """The events as a run, held to the grammar; what is open at its end is left."""
    turn, hearing, decoder = FakeTurn(m.SendMessage(content="x")), AguiDecoder(make_mint(""), MINE), SseDecoder()
    said: list[DecodedItem] = [*hearing.start()]
    for piece in pieces if pieces is not None else [encoded(START, *events, END)]:
        said += [one for event in decoder.feed(piece) for one in hearing.feed(decode_frame(event.data))]
    for one in (*said, *hearing.end()):
        if isinstance(one, RemoteAsk | RemoteTurnEnd):
            continue
        event, scope_id = (one.event, one.scope_id) if isinstance(one, ScopedEvent) else (one, m.ROOT)
        turn.record(event, scope_id)
    turn.record(m.TurnEnded(outcome=m.Outcome.COMPLETED, stop_reason=m.StopReason.END_TURN))
    return turn


def blocks(turn: FakeTurn) -> list[tuple[str, Any]]:
    return [(event.kind.value, event.call.input if event.call else event.text) for event in turn.all(m.BlockEnded)]


def test_a_cut_anywhere_changes_nothing() -> None:
    whole = encoded(
        START, *text("grüß \U0001f600", cuts=2), agui.ReasoningMessageContentEvent(message_id="r", delta="hm"),
        *call("c", "t", '{"ü"', ":1}"), result("c", "é\n"), END,
    )
    plain = heard(pieces=[whole])
    assert blocks(plain) == [("text", "grüß \U0001f600"), ("thinking", "hm"), ("tool_use", {"ü": 1})]
    for at in range(1, len(whole)):
        cut = heard(pieces=[whole[:at], whole[at:]])
        assert [type(event) for event in cut.events] == [type(event) for event in plain.events]
        assert (blocks(cut), cut.results) == (blocks(plain), plain.results)
    assert blocks(heard(pieces=[bytes([byte]) for byte in whole])) == blocks(plain)


def test_chunks_last_until_something_else_comes() -> None:
    turn = heard(
        agui.TextMessageChunkEvent(message_id="m1", delta="a"), agui.TextMessageChunkEvent(delta="b"),
        agui.StepStartedEvent(step_name="s"), agui.TextMessageChunkEvent(delta="c"),
        agui.TextMessageChunkEvent(message_id="m2", delta="d"),
        agui.ToolCallChunkEvent(tool_call_id="c1", tool_call_name="t", delta='{"a"'),
        agui.ToolCallChunkEvent(delta=":1}"),
        agui.ToolCallChunkEvent(tool_call_id="c2", tool_call_name="t"), result("c1", "one"), result("c2", "two"),
    )
    assert blocks(turn) == [("text", "abc"), ("text", "d"), ("tool_use", {"a": 1}), ("tool_use", {})]
    assert turn.results == ["one", "two"]


def test_thoughts_may_be_signed_after_their_end() -> None:
    turn = heard(
        agui.ReasoningStartEvent(message_id="r"), agui.ReasoningMessageStartEvent(message_id="r1"),
        agui.ReasoningMessageContentEvent(message_id="r1", delta="hm"), agui.ReasoningMessageEndEvent(message_id="r1"),
        agui.ReasoningEncryptedValueEvent(subtype="message", entity_id="r1", encrypted_value="sig"),
        agui.ReasoningEncryptedValueEvent(subtype="message", entity_id="nobody", encrypted_value="x"),
        agui.ReasoningEndEvent(message_id="r"), agui.ReasoningMessageChunkEvent(message_id="r2", delta="ah"),
        *text("So."),
    )
    signed = [(event.text, event.signature) for event in turn.all(m.BlockEnded)]
    assert signed == [("hm", "sig"), ("ah", None), ("So.", None)]


def test_thoughts_in_the_old_spelling() -> None:
    old = [
        {"type": "THINKING_START"}, {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "one"}, {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_TEXT_MESSAGE_START"}, {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "two"},
        {"type": "THINKING_END"},
    ]
    turn = heard(*(f"data: {orjson.dumps(event).decode()}\n\n" for event in old), *text("So."))
    assert blocks(turn) == [("thinking", "one"), ("thinking", "two"), ("text", "So.")]


def test_a_message_there_is_a_message_here() -> None:
    turn = heard(
        *text("one", "m1"), *text("two", "m2"), *call("c", "t", "{}", parent="m2"), result("c", ""),
        *text("three", "m3"),
    )
    said = [entry.content for entry in turn.view.entries if entry.role == "assistant"]
    assert [[type(part).__name__ for part in content] for content in said] == [
        ["TextPart"], ["TextPart", "ToolUsePart"], ["TextPart"]]


def test_other_peoples_texts_are_not_the_agents() -> None:
    theirs = [agui.TextMessageStartEvent(message_id="u", role="user"), *text("not mine", "u")[1:]]
    assert heard(*theirs, agui.TextMessageChunkEvent(message_id="v", role="system", delta="nor this")).text == ""


def test_calls_side_by_side_and_out_of_order() -> None:
    a, b = call("a", "t", '{"n":', "1}"), call("b", "t", '{"n":', "2}")
    late = result("a", "A"), result("a", "again")
    turn = heard(a[0], b[0], b[1], a[1], b[2], b[3], result("b", "B"), a[2], a[3], *late)
    assert blocks(turn) == [("tool_use", {"n": 1}), ("tool_use", {"n": 2})]
    assert sorted(turn.results) == ["A", "B"]


def test_broken_calls_do_no_harm() -> None:
    turn = heard(
        *call("torn", "t", '{"a":'), result("torn", "x"), agui.ToolCallArgsEvent(tool_call_id="nobody", delta="{}"),
        agui.ToolCallEndEvent(tool_call_id="nobody"), result("nobody", "x"), *call("list", "t", "[1]"),
        agui.ToolCallStartEvent(tool_call_id="open", tool_call_name="t"),
    )
    assert [event.torn for event in turn.all(m.BlockEnded)] == [True, True, False]
    assert turn.results == [""]


def test_results_with_pictures() -> None:
    parts = [
        {"type": "text", "text": "see"}, {"type": "audio", "source": {"type": "url", "value": "https://a"}},
        {"type": "image", "source": {"type": "data", "value": "AA", "mimeType": "image/png"}},
        {"type": "image", "source": {"type": "url", "value": "https://x"}},
    ]
    turn = heard(*call("c", "t"), result("c", parts))
    assert turn.all(m.ToolReturned)[0].content == (
        m.TextPart(text="see"), m.ImagePart(url="data:image/png;base64,AA", media_type="image/png"), m.ImagePart(url="https://x"))


def test_what_was_not_heard_is_said_from_the_whole_conversation() -> None:
    snapshot = agui.MessagesSnapshotEvent.model_validate({"messages": [
        {"id": "a0", "role": "assistant", "content": "long ago"}, {"id": "u", "role": "user", "content": "hello"},
        {"id": "m1", "role": "assistant", "content": "Heard."},
        {"id": "other", "role": "assistant", "content": "Heard."},
        {"id": "m2", "role": "assistant", "content": "New.", "toolCalls": [
            {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a":1}'}},
            {"id": "c2", "type": "function", "function": {"name": "t", "arguments": "{}"}}]},
        {"id": "r", "role": "tool", "toolCallId": "c2", "content": "two"},
        {"id": "x", "role": "activity", "activityType": "PLAN", "content": {}},
    ]})
    turn = heard(*text("Heard."), *call("c1", "t", '{"a":1}'), result("c1", "one"), snapshot, snapshot)
    assert turn.text == "Heard.New."
    assert turn.results == ["one", "two"]


def test_state_steps_activities_and_other_events() -> None:
    turn = heard(
        agui.StateSnapshotEvent(snapshot={"a": 1}),
        agui.StepStartedEvent(step_name="s"), agui.StepFinishedEvent(step_name="s"),
        agui.CustomEvent(name="mood", value="good"), agui.CustomEvent(name="card", value={"x": 1}),
        agui.RawEvent(event=[1]),
        agui.ActivitySnapshotEvent(message_id="p", activity_type="PLAN", content={"steps": []}),
        agui.ActivityDeltaEvent.model_validate({"messageId": "p", "activityType": "PLAN", "patch": [
            {"op": "add", "path": "/steps/-", "value": "look"}]}),
        'data: {"type": "SOMETHING_NEW", "field": 1}\n\n',
    )
    assert [(event.topic, event.payload) for event in turn.all(m.CustomEvent)] == [
        ("agui.state", {"snapshot": {"a": 1}}), ("agui.step", {"name": "s", "status": "started"}),
        ("agui.step", {"name": "s", "status": "finished"}), ("mood", {"value": "good"}), ("card", {"x": 1}),
        ("agui.raw", {"event": [1], "source": None})]
    assert [(event.data.type, event.data.content) for event in turn.all(m.BlockEnded)] == [
        ("plan", {"steps": []}), ("plan", {"steps": ["look"]})]


def test_an_activity_while_a_call_is_written_is_told_beside_it() -> None:
    start, arguments, end = call("c", "t", "{}")
    turn = heard(start, agui.ActivitySnapshotEvent(message_id="p", activity_type="PLAN", content={}), arguments, end)
    assert blocks(turn) == [("tool_use", {})]
    assert [event.topic for event in turn.all(m.CustomEvent)] == ["plan"]


def test_sub_agents_have_scopes() -> None:
    def by(name: str, *events: Any) -> list[Any]:
        return [event.model_copy(update={"subagent_run_id": name}) for event in events]

    turn = heard(
        *call("c", "delegate", "{}"),
        agui.SubagentStartedEvent(subagent_run_id="s1", name="scout", parent_tool_call_id="c"),
        *by("s1", *text("I look. ", "m2")), *text("Meanwhile. ", "m3"),
        *by("s1", *call("c2", "t", "{}"), result("c2", "ok")),
        agui.SubagentStartedEvent(subagent_run_id="s2", name="helper", parent_subagent_run_id="s1"),
        agui.SubagentErrorEvent(subagent_run_id="s2", message="lost"), agui.SubagentFinishedEvent(subagent_run_id="s1"),
        *by("s3", *text("Unannounced.", "m5")), result("c", "done"), *text("All said.", "m4"),
    )
    assert turn.text == "Meanwhile. All said."
    opened = [(record.scope_id, record.event) for record in turn.records if isinstance(record.event, m.ScopeOpened)]
    assert [(event.parent, event.agent, event.call_id) for _, event in opened] == [
        ("root", "scout", "c"), (opened[0][0], "helper", None), ("root", None, None)]
    assert [event.stop_reason for event in turn.all(m.ScopeStatusChanged)] == ["error", "end_turn", "end_turn"]
    assert [event.title for event in turn.all(m.NoticePosted)] == ["lost"]


def test_what_a_run_waits_for() -> None:
    hearing = AguiDecoder(make_mint(""), MINE)
    hearing.start()
    paused = RunFinishedInterruptOutcome.model_validate({"interrupts": [{"id": "i", "reason": "r"}]})
    end = END.model_copy(update={"outcome": paused})
    told = encoded(START, *call("c1", "mine", "{}"), *call("c2", "own", "{}"), end, *text("too late"))
    items = [item for event in SseDecoder().feed(told) for item in hearing.feed(decode_frame(event.data))]
    assert [call.call_id for call in hearing.waiting_calls] == ["c1"]
    assert [interrupt.id for interrupt in hearing.interrupts] == ["i"]
    asked = [item for item in items if isinstance(item, RemoteAsk)]
    assert [(one.ask.kind, one.ref) for one in asked] == [("client_tool", "c1"), ("question", "i")]
    assert items[-2:] == asked, "nothing follows the asks"
    assert hearing.paused
    for one, answer in zip(asked, (m.ReturnResult(request_id="", content=""), m.Withdraw(request_id="")), strict=True):
        assert hearing.paused
        hearing.on_answer(one, answer)
    assert not hearing.paused


def decoded(hearing: AguiDecoder, *events: Any) -> list[DecodedItem]:
    return [item for event in SseDecoder().feed(encoded(*events)) for item in hearing.feed(decode_frame(event.data))]


def test_the_end_of_a_run_is_the_end_of_the_turn_and_a_new_run_begins_the_next() -> None:
    hearing = AguiDecoder(make_mint(""), frozenset())
    hearing.start()
    assert decoded(hearing, START, *text("one"), END)[-1] == RemoteTurnEnd()
    assert decoded(hearing, *text("too late")) == []
    again = decoded(hearing, START, *text("two"), END)
    assert [item.delta for item in again if isinstance(item, m.BlockDelta)] == ["two"]
    assert again[-1] == RemoteTurnEnd()
    cancelled = decoded(hearing, START, END.model_copy(update={"outcome": RunFinishedCancelledOutcome()}))
    assert cancelled[-1] == RemoteTurnEnd(stop_reason=m.StopReason.INTERRUPTED, outcome=m.Outcome.INTERRUPTED)


def test_the_settings_say_which_tools_the_client_runs() -> None:
    hearing = AguiDecoder(make_mint(""), frozenset())
    hearing.configure(m.Settings(client_tools=(m.ToolSpec(name="mine"),)))
    asked = decoded(hearing, START, *call("c1", "mine", "{}"), END)[-1]
    assert isinstance(asked, RemoteAsk) and isinstance(asked.ask, m.ClientToolAsk)


def test_what_a_stream_that_stops_leaves_open_is_ended() -> None:
    hearing = AguiDecoder(make_mint(""), MINE)
    said = decoded(hearing, START, *text("half")[:2], *call("c1", "own", "{}"))
    ends = hearing.end()
    assert [event.content for event in ends if isinstance(event, m.ToolReturned)] == [""]
    started = [item.block_id for item in [*said, *ends] if isinstance(item, m.BlockStarted)]
    assert sorted(started) == sorted(item.block_id for item in [*said, *ends] if isinstance(item, m.BlockEnded))


# -- whatever the order ------------------------------------------------------------------------------------------------

inputs = st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)


class Walk:
    """A run nobody wrote: texts, thoughts and calls side by side, each piece marked, so that none can be lost."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.events, self.count = draw, list[Any](), 0
        self.said: dict[str, list[str]] = {}
        self.calls: dict[str, tuple[Any, list[str]]] = {}
        self.inputs: dict[str, Any] = {}
        self.results: dict[str, str] = {}

    def step(self) -> None:
        moves = [self.text, self.thought, self.beside, self.begin_call]
        moves += [self.go_on] * 3 if self.calls else []
        self.draw(st.sampled_from(moves))()

    def mark(self, name: str) -> str:
        self.count += 1
        piece = f"{name}{self.count};"
        self.said.setdefault(name, []).append(piece)
        return piece

    def text(self) -> None:
        name = self.draw(st.sampled_from(["a", "b"]))
        if self.draw(st.booleans()):
            self.events.append(agui.TextMessageChunkEvent(message_id=name, delta=self.mark(name)))
        else:
            self.events.append(agui.TextMessageContentEvent(message_id=name, delta=self.mark(name)))
        if self.draw(st.booleans()):
            self.events.append(agui.TextMessageEndEvent(message_id=name))

    def thought(self) -> None:
        name = self.draw(st.sampled_from(["x", "y"]))
        self.events.append(agui.ReasoningMessageContentEvent(message_id=name, delta=self.mark(name)))

    def beside(self) -> None:
        self.events.append(agui.CustomEvent(name="n", value=1))

    def begin_call(self) -> None:
        self.count += 1
        name, given = f"call{self.count}", self.draw(inputs)
        written = orjson.dumps(given).decode()
        at = self.draw(st.integers(0, len(written)))
        self.calls[name] = given, [written[:at], written[at:]]
        self.inputs[name] = given
        self.events.append(agui.ToolCallStartEvent(tool_call_id=name, tool_call_name="t"))

    def go_on(self) -> None:
        name = self.draw(st.sampled_from(sorted(self.calls)))
        _, rest = self.calls[name]
        if rest:
            self.events.append(agui.ToolCallArgsEvent(tool_call_id=name, delta=rest.pop(0)))
        else:
            del self.calls[name]
            if self.draw(st.booleans()):
                self.events.append(agui.ToolCallEndEvent(tool_call_id=name))
            self.results[name] = f"result of {name}"
            self.events.append(result(name, self.results[name]))


@st.composite
def walks(draw: Any) -> Walk:
    walk = Walk(draw)
    for _ in range(draw(st.integers(0, 25))):
        walk.step()
    while walk.calls:
        walk.go_on()
    return walk


@given(walks())
def test_whatever_is_told_is_lawful_and_says_the_same(walk: Walk) -> None:
    turn = heard(*walk.events)
    told = "".join(event.text or "" for event in turn.all(m.BlockEnded))
    pieces = re.findall(r"([abxy])(\d+;)", told)
    for name, said in walk.said.items():
        assert [f"{one}{number}" for one, number in pieces if one == name] == said
    assert "".join(event.delta for event in turn.all(m.BlockDelta) if event.kind in ("text", "thinking")) == told
    assert len(pieces) == sum(map(len, walk.said.values()))
    calls = {event.call.call_id: event.call.input for event in turn.all(m.BlockEnded) if event.call}
    assert calls == walk.inputs
    assert {event.call_id: event.content for event in turn.all(m.ToolReturned)} == walk.results
