"""Entries of the history as AG-UI messages, which the protocol's own models must take, and what comes back."""

from typing import Any

import pytest
from ag_ui.core import Message
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

import gateway.model as m
from gateway.backends.agui.messages import entry_messages, tool_content

READ = TypeAdapter(list[Message])
words = st.text(max_size=5)
parts = st.one_of(
    st.builds(m.TextPart, text=words),
    st.builds(m.ThinkingPart, text=words, signature=st.none() | words),
    st.builds(
        m.ToolUsePart, call=st.builds(m.ToolCall, call_id=words, name=words, input=st.dictionaries(words, words))
    ),
    st.builds(m.ImagePart, url=st.sampled_from(["https://x/y.png", "data:image/png;base64,AAAA", "data:,x"])),
    st.builds(m.FilePart, name=words, url=st.none() | st.just("https://x"), file_id=st.none() | words),
    st.builds(m.DataPart, type=words, content=words),
)


@given(st.sampled_from(m.Role), words | st.lists(parts, max_size=5).map(tuple), st.booleans())
def test_every_entry_is_something_the_protocol_knows(role: m.Role, content: Any, is_error: bool) -> None:
    call_id = "c1" if role is m.Role.TOOL else None
    entry = m.HistoryEntry(role=role, content=content, seq=1, at=0, message_id="m1", call_id=call_id, is_error=is_error)
    told = READ.validate_python(entry_messages(entry, {"m1": "theirs"}))
    if role in (m.Role.USER, m.Role.SYSTEM):
        assert [(message.id, message.role) for message in told] == [("theirs", role.value)]
    if role is m.Role.TOOL:
        assert [message.tool_call_id for message in told] == ["c1"]  # type: ignore[union-attr]
        assert (told[0].error is not None) is is_error  # type: ignore[union-attr]
    if isinstance(content, str) and content:
        assert [message.content for message in told] == [content]


def test_what_has_no_id_is_given_one() -> None:
    [told] = entry_messages(m.HistoryEntry(role=m.Role.USER, content="x", seq=7, at=0), {})
    assert told["id"] == "entry-7"


def test_data_is_sent_as_data() -> None:
    [told] = entry_messages(
        m.HistoryEntry(role=m.Role.USER, content=(m.ImagePart(url="data:text/plain,%68i"),), seq=7, at=0), {}
    )
    assert told["content"] == [
        {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "text/plain"}}]


@pytest.mark.parametrize(("content", "found"), [
    ("words", "words"), (None, ""), ({"a": 1}, '{"a":1}'), ([], ""), ([{"type": "text", "text": "a"}, 7], "a"),
    ([{"type": "image"}], ""),
])
def test_results(content: Any, found: str) -> None:
    assert m.text_of(tool_content(content)) == found
