"""What a server says that does not fit the table is a failure of the server, in words that name it."""

from typing import ClassVar

import pytest

from adapters.aap.bodies import CreatedBody
from gateway.errors import BackendFailed
from mappings.language import Body, ServerTable

AAP = ServerTable("adapters.aap", "sse")


class Created(Body):
    row: ClassVar[str] = "created"
    session_id: int


def test_a_body_is_written_and_read() -> None:
    assert AAP.spell(CreatedBody(session_id="s1")) == {"sessionId": "s1"}
    assert AAP.read("created", {"sessionId": "s1"}, "the session") == {"session_id": "s1"}
    assert AAP.read_as(CreatedBody, {"sessionId": "s1"}, "it") == CreatedBody(session_id="s1")


@pytest.mark.parametrize("body", [{}, [], None, {"sessionId": 5}])
def test_what_does_not_fit_is_named(body: object) -> None:
    with pytest.raises(BackendFailed, match="the session of the server cannot be understood"):
        AAP.read("created", body, "the session")
    with pytest.raises(BackendFailed, match="created of the server"):
        AAP.read("created", body)


def test_what_does_not_fit_its_struct_is_named() -> None:
    with pytest.raises(BackendFailed, match=r"the session of the server cannot be understood: .*whole number"):
        AAP.read_as(Created, {"sessionId": "s1"}, "the session")


def test_frames_bind_what_is_wanted_and_what_is_always() -> None:
    decoder = AAP.frames({"tool.returned": ("content",)}, ["call_id"])
    found = decoder.decode("tool_result", {"toolCallId": "c", "content": "x"})
    assert found is not None and found.bindings == {"call_id": "c", "content": "x"}
    other = decoder.decode("text_delta", {"delta": "x"})
    assert other is not None and other.bindings == {}
