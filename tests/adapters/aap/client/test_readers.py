"""What AAP servers say, read: leniently where that is harmless, and refused in clear words where it is not."""

from typing import Any

import pytest

import gateway.model as m
from adapters.aap.bodies import AgentBody, CreatedBody, MessageBody, MetaBody, ToolBody
from adapters.aap.client.readers import AAP, media_type_of
from gateway.errors import BackendFailed


def test_names_are_aaps_and_members_nobody_knows_are_passed_over() -> None:
    assert AAP.read_as(MessageBody, {"role": "tool", "toolCallId": "c", "extra": [1]}, "a message") == MessageBody(
        role="tool", call_id="c", content=None)


@pytest.mark.parametrize(("body", "words"), [
    ({}, "'name' is missing"), ([], "'the body' should be an object"), (None, "'the body' should be an object"),
    ({"name": ""}, "'name' should be a text that is not empty"),
    ({"name": 3}, "'name' should be a text that is not empty"),
    ({"name": "n", "parameters": []}, "'parameters' should be an object"),
])
def test_what_cannot_be_is_refused_in_clear_words(body: Any, words: str) -> None:
    with pytest.raises(BackendFailed, match=f"a tool of the server cannot be understood: {words}"):
        AAP.read_as(ToolBody, body, "a tool")


def test_what_is_wrong_within_a_list_is_named_with_its_place() -> None:
    body = {"version": 3, "agents": [{"name": "a"}, {"name": "b", "tools": [{"name": "t"}, {}]}]}
    with pytest.raises(BackendFailed, match=r"'agents\.1\.tools\.1\.name' is missing"):
        AAP.read_as(MetaBody, body, "the description")
    body["agents"] = [{"name": "a", "capabilities": {"stream": 5}}]
    with pytest.raises(BackendFailed, match=r"the description of the server cannot be understood: .*capabilities"):
        AAP.read_as(MetaBody, body, "the description")


def test_what_is_refused_is_not_repeated() -> None:
    with pytest.raises(BackendFailed) as refused:
        AAP.read_as(AgentBody, {"name": {"secret": "sk-12345678"}}, "an agent")
    assert "sk-12345678" not in str(refused.value)


@pytest.mark.parametrize("id", ["", "..", ".", "a/b", "a?b", "a#b", "a b", "%2e%2e"])
def test_a_session_has_an_id_that_can_be_part_of_an_address(id: str) -> None:
    with pytest.raises(BackendFailed):
        AAP.read_as(CreatedBody, {"sessionId": id}, "the answer")
    assert AAP.read_as(CreatedBody, {"sessionId": "sess_1.2-ü"}, "the answer").session_id == "sess_1.2-ü"


def content_of(said: Any) -> Any:
    return AAP.read_as(MessageBody, {"role": "assistant", "content": said}, "a message").content


def test_content_is_words_or_parts() -> None:
    assert (content_of(None), content_of("words")) == (None, "words")
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}, {"type": "video"}, {"type": "text"},
        {"type": "tool_use", "toolCallId": "c", "name": "n", "input": {"x": 1}}, {"type": "image", "url": "https://e/i"},
    ]
    assert content_of(blocks) == (
        m.TextPart(text="a"),
        m.ThinkingPart(text="b"),
        m.ToolUsePart(call=m.ToolCall(call_id="c", name="n", input={"x": 1})),
        m.ImagePart(url="https://e/i"),
    )


def test_optional_members_may_be_absent_or_null() -> None:
    meta = AAP.read_as(MetaBody, {"version": 3, "agents": [{"name": "a", "title": None, "tools": None}]}, "it")
    assert (meta.agents[0].version, meta.agents[0].tools, meta.agents[0].capabilities) == (None, None, None)


@pytest.mark.parametrize(("url", "kind"), [
    ("data:image/png;base64,AA==", "image/png"), ("data:image/svg+xml,<svg/>", "image/svg+xml"), ("data:,x", None),
    ("https://example.test/a.png", None),
])
def test_an_address_may_tell_what_it_holds(url: str, kind: str | None) -> None:
    assert media_type_of(url) == kind
