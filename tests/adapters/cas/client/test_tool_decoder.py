"""Tool uses: whose they are, what comes back, and the files that come with it."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.decoder import listed_event
from adapters.cas.client.tool_decoder import ORIGINS
from gateway.ports.remote import ParsedFrame
from tests.adapters.cas.client.test_thread_decoder import frame, heard

DOCUMENT = {"type": "document", "title": "a.txt", "source": {"type": "file", "file_id": "file_1"}}


def delivered(file_id: str = "file_1") -> ParsedFrame:
    return frame("agent.artifact_delivered", f"d-{file_id}", file_id=file_id, original_filename="a.txt",
                 content_type="text/plain", size=3)


def result(*content: Any, kind: str = "agent.tool_result", name: str = "tool_use_id", **more: Any) -> ParsedFrame:
    return frame(kind, "e9", **{name: "e1"}, content=[*content], **more)


def calls(*frames: ParsedFrame) -> list[Any]:
    return [one.call for one in heard(*frames) if isinstance(one, m.BlockEnded) and one.call]


def returned(*frames: ParsedFrame) -> list[m.ToolReturned]:
    return [one for one in heard(*frames) if isinstance(one, m.ToolReturned)]


CALLS = {
    "agent.tool_use": m.ToolOrigin.BUILTIN, "agent.mcp_tool_use": m.ToolOrigin.MCP,
    "agent.custom_tool_use": m.ToolOrigin.CLIENT,
}


def test_every_call_has_an_origin() -> None:
    assert {listed_event({"type": kind, "name": "t"}).cue: origin for kind, origin in CALLS.items()} == ORIGINS


@pytest.mark.parametrize(("kind", "origin"), CALLS.items())
def test_a_call_is_its_event(kind: str, origin: m.ToolOrigin) -> None:
    [call] = calls(frame(kind, "e1", name="look", input={"at": 1}, evaluated_permission="ask", mcp_server_name="eyes"))
    assert (call.call_id, call.name, call.input, call.origin) == ("e1", "look", {"at": 1}, origin)
    assert call.permission is m.Permission.ASK
    assert call.server == ("eyes" if origin is m.ToolOrigin.MCP else None)


@pytest.mark.parametrize(("called", "told", "name"), [
    ("agent.tool_use", "agent.tool_result", "tool_use_id"),
    ("agent.mcp_tool_use", "agent.mcp_tool_result", "mcp_tool_use_id"),
    ("agent.mcp_tool_use", "agent.mcp_tool_result", "tool_use_id"),
    ("agent.custom_tool_use", "user.custom_tool_result", "custom_tool_use_id"),
])
def test_a_result_finds_its_call(called: str, told: str, name: str) -> None:
    [back] = returned(frame(called, "e1", name="look"), result({"type": "text", "text": "a cat"}, kind=told, name=name))
    assert (back.call_id, back.content, back.is_error, back.origin) == ("e1", "a cat", False, CALLS[called])


def test_a_failure_is_one() -> None:
    [back] = returned(frame("agent.tool_use", "e1", name="look"), result(is_error=True))
    assert (back.content, back.is_error) == ("", True)


def test_a_file_in_a_result_is_what_was_delivered() -> None:
    back = result({"type": "text", "text": "Here."}, DOCUMENT)
    said = (frame("agent.tool_use", "e1", name="write"), delivered(), back)
    [told] = returned(*said)
    assert told.content[1] == m.FilePart(name="a.txt", file_id="file_1", media_type="text/plain", size=3)
    assert not [one for one in heard(*said) if isinstance(one, m.CustomEvent)]


def test_a_file_without_a_result_is_told_all_the_same() -> None:
    [told] = [one for one in heard(delivered(), delivered("")) if isinstance(one, m.CustomEvent)]
    assert told.payload == {"file_id": "file_1", "name": "a.txt", "media_type": "text/plain", "size": 3}


@pytest.mark.parametrize("own", [True, False], ids=["the server's own result", "the answer alone"])
def test_a_question_is_a_call_of_the_agent_and_has_one_result(own: bool) -> None:
    asked = frame("agent.custom_tool_use", "e1", name="AskUserQuestion", input={"questions": [{"question": "Which?"}]})
    answer = result({"type": "text", "text": "that"}, kind="user.custom_tool_result", name="custom_tool_use_id")
    told = (frame("span.model_request_start", "e0"), asked, frame("span.model_request_end", "e2"), answer,
            *([frame("agent.tool_result", "e10", tool_use_id="e1", content="Which?: that")] if own else []))
    [call] = calls(*told)
    assert (call.name, call.origin) == ("AskUserQuestion", m.ToolOrigin.BUILTIN)
    [back] = returned(*told)
    assert (back.call_id, back.content, back.is_error) == ("e1", "Which?: that" if own else "that", False)
