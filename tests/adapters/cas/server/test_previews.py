"""What is told while a message is being written, in both forms, and what is passed over."""

import gateway.model as m
from adapters.cas.server.frame_writer import FrameWriter
from adapters.cas.server.previews import make_previews
from adapters.cas.server.stream_options import StreamOptions
from tests.adapters.cas.server.test_projector import (
    ENDED,
    NO_USAGE,
    SPAN,
    STARTED,
    Cas,
    block,
    call,
    delta,
    ended,
    said,
    span_end,
    text,
)
from tests.support.dialect_tables import table
from tests.support.playbook import silence


def started(kind: str, seq: int, at: str) -> tuple[str, int | str, dict[str, object]]:
    return said("event_start", at, event={"id": f"evt_1_{seq}", "type": kind})


def piece(words: str, seq: int, at: str) -> tuple[str, int | str, dict[str, object]]:
    content = {"type": "text", "text": words}
    return said("event_delta", at, event_id=f"evt_1_{seq}",
                delta={"type": "content_delta", "index": 0, "content": content})


def raw(kind: str, number: int = 1, **body: object) -> tuple[str, int | str, dict[str, object]]:
    """Under the id of the record just fed, and its number there."""
    return kind, f"p{number}", body


def test_an_event_is_announced_with_its_first_word() -> None:
    (Cas(deltas=("agent.message",))
        >> STARTED << SPAN
        >> block(m.BlockKind.THINKING) << silence
        >> delta("hm", m.BlockKind.THINKING) << silence
        >> ended(m.BlockKind.THINKING, text="hm") << said("agent.thinking", 2, thinking="hm")
        >> block() << silence
        >> delta("") << silence
        >> delta("he") << started("agent.message", 5, "evt_1_7-p1") << piece("he", 5, "evt_1_7-p2")
        >> delta("llo") << piece("llo", 5, "evt_1_8-p1")
        >> ended(text="hello") << said("agent.message", 5, content=text("hello"))
        >> block() << silence
        >> ended(text="") << silence)


def test_what_a_client_has_had_of_an_event_is_not_told_again() -> None:
    (Cas(deltas=("agent.message",), muted=(2, 4))
        >> STARTED << SPAN
        >> block() << silence
        >> delta("a") << silence
        >> delta("b") << silence
        >> delta("c") << piece("c", 2, "evt_1_5-p1")
        >> ended(text="abc") << said("agent.message", 2, content=text("abc")))


RAW_START = said("agent.message_start", "evt_1_1-p1", message={
    "id": "m", "model": "demo-1", "usage": {"input_tokens": 0, "output_tokens": 0}, "type": "message",
    "role": "assistant", "content": [], "stop_reason": None, "stop_sequence": None})


def test_the_raw_stream_of_a_message() -> None:
    (Cas(incremental=True, raw=True)
        >> STARTED << RAW_START << SPAN
        >> block(m.BlockKind.THINKING)
        << raw("agent.content_block_start", index=0, content_block={
            "type": "thinking", "thinking": "", "signature": ""})
        >> delta("hm", m.BlockKind.THINKING)
        << raw("agent.content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
        >> ended(m.BlockKind.THINKING, text="hm")
        << raw("agent.content_block_stop", index=0) << said("agent.thinking", 2, thinking="hm")
        >> block() << raw("agent.content_block_start", index=1, content_block={"type": "text", "text": ""})
        >> delta("hello")
        << raw("agent.content_block_delta", index=1, delta={"type": "text_delta", "text": "hello"})
        >> ended(text="hello") << raw("agent.content_block_stop", index=1)
        >> block(m.BlockKind.TOOL_USE, call=call())
        << raw("agent.content_block_start", index=2, content_block={
            "type": "tool_use", "id": "evt_1_8", "name": "calc", "input": {}})
        >> delta('{"x":1}', m.BlockKind.TOOL_USE)
        << raw("agent.content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": '{"x":1}'})
        >> ended(m.BlockKind.TOOL_USE, call=call())
        << raw("agent.content_block_stop", index=2)
        << said("agent.tool_use", 8, name="calc", input={"x": 1}, evaluated_permission="allow")
        >> ENDED
        << raw("agent.message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None},
                usage={"output_tokens": NO_USAGE["output_tokens"]})
        << raw("agent.message_stop", 2)
        << ("agent.message", 5, {"content": text("hello"), **AT_BLOCK_END})
        << span_end(1))


def test_a_picture_is_words_of_the_raw_stream_too() -> None:
    picture = m.ImagePart(url="https://x.test/a.png")
    words = {"type": "text_delta", "text": "![image](https://x.test/a.png)"}
    empty = {"type": "text", "text": ""}
    (Cas(raw=True)
        >> STARTED << RAW_START << SPAN
        >> block(m.BlockKind.DATA) << silence
        >> ended(m.BlockKind.DATA, data=m.DataPart(type="x")) << silence
        >> block(m.BlockKind.IMAGE) << silence
        >> ended(m.BlockKind.IMAGE, image=picture)
        << raw("agent.content_block_start", index=0, content_block=empty)
        << raw("agent.content_block_delta", 2, index=0, delta=words)
        << raw("agent.content_block_stop", 3, index=0)
        << said("agent.message", 4, content=text("![image](https://x.test/a.png)"))
        >> block() << raw("agent.content_block_start", index=1, content_block=empty))


AT_BLOCK_END = {"created_at": "2023-11-14T22:13:20.875Z", "processed_at": "2023-11-14T22:13:20.875Z"}


def test_a_connection_has_one_form() -> None:
    writer = FrameWriter(table("cas"), StreamOptions())
    assert type(make_previews(StreamOptions(), writer)).__name__ == "NoPreviews"
    assert type(make_previews(StreamOptions(raw=True), writer)).__name__ == "RawPreviews"
    both = make_previews(StreamOptions(raw=True, deltas=("agent.message",)), writer)
    assert type(both).__name__ == "EventDeltaPreviews"
