"""Stored messages: entries grouped as they were streamed."""

from typing import Any

import pytest

import gateway.model as m
from adapters.zenflux.server.history import StoredMessages, message_bodies, messages_of
from adapters.zenflux.server.routes.conversations import search_conversation
from adapters.zenflux.server.views import image_names, private_metadata, user_id_of, with_user_id
from tests.support.dialect_tables import table

CALL = m.ToolUsePart(call=m.ToolCall(call_id="call_1", name="calc", input={"x": 1}))


def entry(role: m.Role, content: Any, turn: str | None = "turn_1", **more: Any) -> m.HistoryEntry:
    return m.HistoryEntry(role=role, content=content, seq=1, at=1_700_000_000.0, turn_id=turn, **more)


def view(*entries: m.HistoryEntry, **more: Any) -> m.SessionView:
    return m.SessionView(session_id="sess_1", entries=list(entries), **more)


def said(
    name: str, *parts: Any, turn: str = "turn_1", outcome: m.Outcome | None = m.Outcome.COMPLETED
) -> m.HistoryEntry:
    return entry(m.Role.ASSISTANT, parts, turn, message_id=name, outcome=outcome)


def result(turn: str = "turn_1") -> m.HistoryEntry:
    return entry(m.Role.TOOL, "2", turn, call_id="call_1")


def shown(seen: m.SessionView, *, multi_message: bool = True) -> list[tuple[str, Any]]:
    told = message_bodies(table("zenflux"), seen, messages_of(seen, multi_message=multi_message))
    return [(one["id"], one["content"] if isinstance(one["content"], str) else [b["type"] for b in one["content"]])
            for one in told]


ROUNDS = (
    entry(m.Role.USER, "hi", message_id="cmd_1"), said("m1", m.TextPart(text="a"), CALL), result(),
    said("m2", m.TextPart(text="b")), entry(m.Role.USER, "more", "turn_2", message_id="cmd_2"),
    said("m3", CALL, turn="turn_2", outcome=m.Outcome.INTERRUPTED), result("turn_2"),
    entry(m.Role.USER, "last", "turn_3", message_id="cmd_3"), result("turn_3"),
)


def test_results_are_in_the_message_of_their_call_or_in_the_last_of_their_run() -> None:
    assert shown(view(*ROUNDS)) == [
        ("cmd_1", "hi"), ("m1", ["text", "tool_use", "tool_result"]), ("m2", ["text"]),
        ("cmd_2", "more"), ("m3", ["tool_use", "tool_result"]), ("cmd_3", "last"), ("msg_9", ["tool_result"]),
    ]


def test_messages_that_were_kept_ready_are_forgotten_when_the_session_is_rewound() -> None:
    kept, others = StoredMessages(), [
        said(f"n{number}", m.TextPart(text="c"), turn=f"turn_{number}") for number in range(4, 12)]
    assert len(kept.of(view(*ROUNDS), multi_message=True)) == 7
    rewound = view(*ROUNDS[:4], *others)
    assert kept.of(rewound, multi_message=True) == messages_of(rewound, multi_message=True)


@pytest.mark.parametrize("multi_message", [True, False])
def test_what_the_provider_ran_came_back_within_its_message(multi_message: bool) -> None:
    looks = [
        m.ToolUsePart(call=m.ToolCall(call_id=name, name="look", origin=m.ToolOrigin.PROVIDER)) for name in ("a", "b")
    ]
    found = [entry(m.Role.TOOL, "2", call_id=name, origin=m.ToolOrigin.PROVIDER) for name in ("a", "b")]
    seen = view(said("m1", looks[0], m.TextPart(text="x"), looks[1], CALL), *found, result(),
                said("m2", m.TextPart(text="y")))
    first = ["server_tool_use", "tool_result", "text", "server_tool_use", "tool_result", "tool_use", "tool_result"]
    then = ["text"]
    assert shown(seen, multi_message=multi_message) == (
        [("m1", first), ("m2", then)] if multi_message else [("m1", first + then)])
    told = message_bodies(table("zenflux"), seen, messages_of(seen, multi_message=multi_message))
    assert [block["tool_use_id"] for one in told for block in one["content"] if "tool_use_id" in block] == [
        "a", "b", "call_1"]


def test_a_result_that_comes_late_stands_with_its_call() -> None:
    seen = view(
        said("m1", CALL), said("m2", m.TextPart(text="meanwhile")), result(), said("m3", m.TextPart(text="done"))
    )
    assert shown(seen) == [("m1", ["tool_use", "tool_result"]), ("m2", ["text"]), ("m3", ["text"])]


def test_a_run_is_one_message_where_that_is_wanted() -> None:
    assert shown(view(*ROUNDS), multi_message=False)[:3] == [
        ("cmd_1", "hi"), ("m1", ["text", "tool_use", "tool_result", "text"]), ("cmd_2", "more")]


def test_how_a_message_ended() -> None:
    seen = view(*ROUNDS)
    told = message_bodies(table("zenflux"), seen, messages_of(seen, multi_message=True))
    assert [one["status"] for one in told] == [
        "completed", "completed", "completed", "completed", "stopped", "completed", "completed"]
    speaking = view(entry(m.Role.USER, "hi"), said("m1", m.TextPart(text="a"), outcome=None), turn_id="turn_1")
    assert (
        message_bodies(table("zenflux"), speaking, messages_of(speaking, multi_message=True))[1]["status"]
        == "processing"
    )


def test_what_was_said_elsewhere_before() -> None:
    seen = view(
        entry(m.Role.SYSTEM, "be brief", None),
        entry(m.Role.USER, "x", None),
        entry(m.Role.ASSISTANT, "y", None),
        entry(m.Role.USER, "z", None),
    )
    told = message_bodies(table("zenflux"), seen, messages_of(seen, multi_message=False))
    assert [(one["id"], one["role"], one["status"]) for one in told] == [
        ("msg_2", "user", "completed"), ("msg_3", "assistant", "completed"), ("msg_4", "user", "completed")]


def test_pictures_and_files_are_blocks() -> None:
    parts = (m.TextPart(text="see"), m.ImagePart(url="data:image/png;base64,AA"), m.ImagePart(url="https://x.test/p.png"),
             m.FilePart(name="a.txt", file_id="file_1"))
    seen = view(entry(m.Role.USER, parts, message_id="cmd_1"))
    [told] = message_bodies(table("zenflux"), seen, messages_of(seen, multi_message=True))
    assert told["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
        {"type": "image", "source": {"type": "url", "media_type": "image/png", "data": "https://x.test/p.png"}},
        {"type": "file", "file_id": "file_1", "file_name": "a.txt"}]


@pytest.mark.parametrize(("image", "media_type"), [
    (m.ImagePart(url="https://x.test/p.jpg?size=1#top"), "image/jpeg"),
    (m.ImagePart(url="https://x.test/p.png", media_type="image/gif"), "image/gif"),
    (m.ImagePart(url="https://x.test/p.html"), "image/*"), (m.ImagePart(url="https://x.test"), "image/*"),
    (m.ImagePart(url="http://[x"), "image/*"), (m.ImagePart(url="data:;base64,AA"), "image/*"),
    (m.ImagePart(url="data:image/svg+xml,<svg/>"), "image/svg+xml"),
])
def test_a_picture_always_has_a_type(image: m.ImagePart, media_type: str) -> None:
    assert image_names(image)["media_type"] == media_type


def test_whose_a_conversation_is() -> None:
    kept = with_user_id({"tags": ["x"]}, "ann")
    assert user_id_of("", kept) == "ann"
    assert user_id_of("bob", kept) == "ann", "a key may serve many users"
    assert user_id_of("bob", {}) == "bob"
    assert user_id_of("", {}) == "local"
    assert private_metadata(kept) == {"user_id": "ann"}
    assert kept["tags"] == ["x"]


async def test_words_are_looked_for_in_the_title_first() -> None:
    long = entry(m.Role.USER, "x" * 100 + "OWL" + "y" * 100)
    seen = view(long, said("m", m.TextPart(text="nothing")), title="About owls")
    assert await search_conversation(seen, "owl") == ("title", "About owls")
    hit = await search_conversation(view(*seen.entries), "owl")
    assert hit == ("content", "…" + "x" * 40 + "OWL" + "y" * 40 + "…")
    assert await search_conversation(seen, "eagle") is None
    assert await search_conversation(view(result()), "2") is None
