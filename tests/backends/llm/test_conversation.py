"""What a model is reminded of: calls with their results, files in words, and what history does not keep."""

import base64

import pytest

import gateway.model as m
from gateway.backends.llm.conversation import (
    Conversation,
    InputMessage,
    OutputMessage,
    content_as_text,
    conversation_messages,
    file_as_text,
    missing_result,
)
from gateway.backends.llm.openai.request import chat_request
from gateway.backends.llm.service import ModelRequest
from gateway.backends.toolbox import Toolbox
from gateway.model.content import decode_data_url
from tests.support.backends.model_services import turn_of


def call(call_id: str, origin: m.ToolOrigin = m.ToolOrigin.BUILTIN) -> m.ToolCall:
    return m.ToolCall(call_id=call_id, name="t", origin=origin)


def said(*calls: m.ToolCall, turn_id: str | None = None) -> m.HistoryEntry:
    return m.HistoryEntry(role=m.Role.ASSISTANT, content=tuple(m.ToolUsePart(call=one) for one in calls), seq=1, at=0.0,
                 turn_id=turn_id)


def back(call_id: str, content: str = "", turn_id: str | None = None) -> m.HistoryEntry:
    return m.HistoryEntry(role=m.Role.TOOL, content=content, call_id=call_id, seq=2, at=0.0, turn_id=turn_id)


def test_results_stand_with_their_calls_wherever_they_came() -> None:
    entries = [
        said(call("a"), call("b")),
        back("b", "2"),
        m.HistoryEntry(role=m.Role.USER, content="hm", seq=3, at=0.0),
        back("a", "1"),
        said(call("a")),
        back("a", "3"),
        back("z", "?"),
    ]
    first, heard, second, orphan = conversation_messages(entries)
    assert isinstance(first, OutputMessage) and {id: one.content for id, one in first.results.items()} == {
        "a": "1",
        "b": "2",
    }
    assert isinstance(second, OutputMessage) and second.results["a"].content == "3"
    assert heard == InputMessage(m.Role.USER, (m.TextPart(text="hm"),))
    assert orphan == InputMessage(m.Role.USER, (m.TextPart(text="A tool gave back: ?"),))


def test_a_turn_remembers_what_it_says() -> None:
    memory = Conversation(turn_of("Hi", history=[said(call("old"))]))
    made = call("new")
    for event in (
        m.MessageStarted(message_id="m1", model="m"),
        m.BlockStarted(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=made),
        m.BlockEnded(block_id="b1", message_id="m1", kind=m.BlockKind.TOOL_USE, call=made),
        m.MessageEnded(message_id="m1"),
    ):
        memory.note(event)
    assert (memory.call_ids, memory.steps, memory.open_calls) == ({"old"}, 1, [made])
    memory.note(m.ToolReturned(call_id="new", content="yes"))
    assert memory.open_calls == []
    memory.note_torn(call("torn"))
    last = memory.messages[-1]
    assert isinstance(last, OutputMessage) and [one.call_id for one in last.calls] == ["new", "torn"]
    assert (last.model, last.results["torn"].is_error, last.results["new"].content) == ("m", True, "yes")


def test_a_message_of_nothing_but_a_torn_call_is_remembered() -> None:
    memory = Conversation(turn_of())
    memory.note(m.MessageStarted(message_id="m1"))
    memory.note_torn(call("torn"))
    assert isinstance(memory.messages[-1], OutputMessage)


def test_a_turn_that_comes_back_knows_what_it_waits_for() -> None:
    history = [said(call("a")), said(call("b"), call("c"), call("p", m.ToolOrigin.PROVIDER), turn_id="turn_1"),
               back("b", turn_id="turn_1")]
    turn = turn_of()
    turn.history = history
    assert [one.call_id for one in Conversation(turn).open_calls] == ["c"]


@pytest.mark.parametrize(("url", "kind", "data"), [
    ("data:text/plain;base64,aGk=", "text/plain", b"hi"), ("data:,a%20b", "text/plain", b"a b"),
    ("data:image/png;base64,!", "image/png", None), ("https://example.org", "", None),
    ("data:nothing", "nothing", None),
])
def test_what_an_address_carries(url: str, kind: str, data: bytes | None) -> None:
    assert decode_data_url(url) == (kind, data)


def test_parts_in_words() -> None:
    latin = base64.b64encode("naïve".encode("latin-1")).decode()
    assert content_as_text((m.TextPart(text="a"), m.DataPart(type="card"), m.ImagePart(url="https://x/y.png"))) == (
        "a\n![image](https://x/y.png)")
    assert file_as_text(m.FilePart(name="f", url=f"data:text/plain;base64,{latin}")) == "[file f]\nna\ufffdve"
    assert file_as_text(m.FilePart(name="f", file_id="file_1")) == "[file f]"
    assert missing_result(call("a")).is_error


def test_a_request_has_no_more_than_it_needs() -> None:
    asking = ModelRequest(
        model="m", system="", exchanges=[InputMessage(m.Role.USER, ())], toolbox=Toolbox(turn_of(), {}, {})
    )
    assert chat_request(asking)["messages"] == [{"role": "user", "content": ""}]
    assert chat_request(asking)["tools"] is None
