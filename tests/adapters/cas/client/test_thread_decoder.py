"""One thread's words: whole, announced event by event, or raw, and each told once."""

from typing import Any

import pytest

import gateway.model as m
from adapters.cas.client.decoder import Decoder
from gateway.errors import BackendFailed
from gateway.ids import make_mint
from gateway.ports.remote import ParsedFrame, RemoteTurnEnd
from tests.support.dialects.cas.facts import CheckedDecoder, Turn


def frame(type: str, id: str = "", **body: Any) -> ParsedFrame:
    return ParsedFrame(type, {"type": type, **({"id": id} if id else {}), **body}, id)


def message(id: str, *texts: str) -> ParsedFrame:
    return frame("agent.message", id, content=[{"type": "text", "text": text} for text in texts])


def announced(id: str, type: str = "agent.message") -> ParsedFrame:
    return frame("event_start", event={"id": id, "type": type})


def delta(id: str, text: str, index: int = 0) -> ParsedFrame:
    return frame("event_delta", event_id=id, delta={"index": index, "content": {"type": "text", "text": text}})


def start(index: int, type: str = "text") -> ParsedFrame:
    return frame("agent.content_block_start", index=index, content_block={"type": type})


def grown(index: int, **delta: str) -> ParsedFrame:
    return frame("agent.content_block_delta", index=index, delta=delta)


def stop(index: int) -> ParsedFrame:
    return frame("agent.content_block_stop", index=index)


IDLE = frame("session.status_idle", "e99", stop_reason={"type": "end_turn"})
RAW = frame("agent.message_start", message={"id": "m1", "model": "m"})
SPAN, SPAN_END = frame("span.model_request_start", "s1", model="m"), frame("span.model_request_end", "s2")


def heard(*frames: ParsedFrame) -> list[Any]:
    hearing, witness, said = Decoder(make_mint("t")), CheckedDecoder(), []
    for one in (*frames, IDLE):
        told = hearing.feed(one)
        witness.hear(told, hearing.paused)
        said += told
    return said


def turn(*frames: ParsedFrame) -> Turn:
    witness = CheckedDecoder()
    witness.hear(heard(*frames))
    return witness.facts.turns[0]


def blocks(*frames: ParsedFrame) -> list[tuple[str, str | None]]:
    return [(one.kind.value, one.text) for one in heard(*frames) if isinstance(one, m.BlockEnded)]


# -- event by event ---------------------------------------------------------------------------------------------------

def test_what_was_announced_is_told_once() -> None:
    assert blocks(SPAN, announced("e1"), delta("e1", "Good "), delta("e1", "day"), message("e1", "Good day")) == [
        ("text", "Good day")]


def test_what_was_announced_in_part_is_made_whole() -> None:
    assert blocks(announced("e1"), delta("e1", "Good "), message("e1", "Good day")) == [("text", "Good day")]
    assert blocks(announced("e1"), delta("e1", "Good day\n"), message("e1", "Good day")) == [("text", "Good day\n")]


def test_blocks_of_one_event_are_told_apart() -> None:
    frames = (announced("e1"), delta("e1", "a"), delta("e1", "b", 1), delta("e1", "a"), message("e1", "aa", "b", "c"))
    assert blocks(*frames) == [("text", "aa"), ("text", "b"), ("text", "c")]


def test_thoughts_are_announced_too() -> None:
    thought = frame("agent.thinking", "e1", thinking="Hm, well")
    assert blocks(announced("e1", "agent.thinking"), delta("e1", "Hm"), thought) == [("thinking", "Hm, well")]


def test_an_announcement_that_never_comes_true_stays_said() -> None:
    assert blocks(SPAN, announced("e1"), delta("e1", "Good "), SPAN_END) == [("text", "Good ")]


def test_a_call_does_not_wait_for_words_that_do_not_end() -> None:
    told = turn(announced("e1"), delta("e1", "Let me "), frame("agent.tool_use", "e2", name="look"),
                frame("agent.tool_result", "e3", tool_use_id="e2", content="a cat"), message("e1", "Let me see"))
    assert told.results == [("root", 0, "a cat", False)]
    assert "".join(told.words("text")) == "Let me see"


def test_words_cannot_be_taken_back() -> None:
    with pytest.raises(BackendFailed, match="not those it had announced"):
        heard(announced("e1"), delta("e1", "Good day"), message("e1", "Good night"))


def test_pictures_stand_in_their_place() -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
    content = [{"type": "text", "text": "Look:"}, picture, {"type": "text", "text": "nice"}]
    assert turn(frame("agent.message", "e1", content=content)).words("text") == [
        "Look:", "![image](https://example.test/a.png)", "nice"]


# -- raw --------------------------------------------------------------------------------------------------------------

def test_raw_words_are_told_as_they_come_and_once() -> None:
    frames = (
        RAW, SPAN, start(0, "thinking"), grown(0, type="thinking_delta", thinking="Hm"), stop(0),
        frame("agent.thinking", "e1", thinking="Hm"), start(1), grown(1, type="text_delta", text="Good "),
        grown(1, type="text_delta", text="day"), stop(1), frame("agent.message_stop"), message("e2", "Good day"),
        SPAN_END,
    )
    assert blocks(*frames) == [("thinking", "Hm"), ("text", "Good day")]
    assert len(turn(*frames).messages["root"]) == 1, "the span is the message"


def test_a_signature_is_kept() -> None:
    said = heard(
        RAW, start(0, "thinking"), grown(0, type="thinking_delta", thinking="Hm"),
        grown(0, type="signature_delta", signature="abc"), stop(0), frame("agent.thinking", "e1", thinking="Hm"),
    )
    assert [(one.text, one.signature) for one in said if isinstance(one, m.BlockEnded)] == [("Hm", "abc")]


@pytest.mark.parametrize("why", [m.StopReason.REFUSAL, m.StopReason.MAX_TOKENS, m.StopReason.END_TURN])
def test_the_raw_stream_tells_why_a_message_ended(why: m.StopReason) -> None:
    said = heard(RAW, SPAN, start(0), grown(0, type="text_delta", text="No."), stop(0),
                 frame("agent.message_delta", delta={"stop_reason": str(why)}), message("e1", "No."), SPAN_END)
    assert [one.stop_reason for one in said if isinstance(one, m.MessageEnded | RemoteTurnEnd)] == [why, why]


def test_what_the_raw_stream_passes_over_comes_in_its_place() -> None:
    frames = (RAW, SPAN, start(1), grown(1, type="text_delta", text="nice"), stop(1),
              message("e1", "![image](x)"), message("e2", "nice"), SPAN_END)
    assert blocks(*frames) == [("text", "![image](x)"), ("text", "nice")]


def test_a_block_of_which_the_cut_left_nothing_comes_before_those_after_it() -> None:
    hearing, witness = Decoder(make_mint("t")), CheckedDecoder()
    for one in (RAW, SPAN, start(0)):
        witness.hear(hearing.feed(one), hearing.paused)
    hearing.on_reconnect()
    for one in (start(1), grown(1, type="text_delta", text="no no"), stop(1),
                message("e1", "no"), message("e2", "no no"), SPAN_END, IDLE):
        witness.hear(hearing.feed(one), hearing.paused)
    [told] = witness.facts.turns[0].messages["root"]
    assert told.parts == [("text", "no"), ("text", "no no")]


def test_a_raw_message_without_a_span_is_a_message() -> None:
    second = frame("agent.message_start", message={"id": "m2"})
    told = turn(RAW, start(0), grown(0, type="text_delta", text="a"), stop(0), message("e1", "a"),
                second, start(0), grown(0, type="text_delta", text="b"), stop(0), second, message("e2", "b"))
    assert [[part[1] for part in one.parts] for one in told.messages["root"]] == [["a"], ["b"]]


def test_raw_nonsense_says_nothing() -> None:
    assert blocks(RAW, start(0), grown(7, type="text_delta", text="x"), grown(0, type="text_delta"), stop(7),
                  frame("agent.content_block_start"), frame("agent.content_block_delta"), stop(0)) == []


def test_a_tool_of_the_raw_stream_is_told_by_its_event() -> None:
    told = turn(
        RAW, SPAN, start(0, "tool_use"), grown(0, type="input_json_delta", partial_json='{"a"'), stop(0),
        frame("agent.tool_use", "e1", name="look", input={"a": 1}), start(1), grown(1, type="text_delta", text="x"),
        stop(1), message("e2", "x"), SPAN_END,
    )
    assert [part[:3] for part in told.messages["root"][0].parts] == [("call", "look", {"a": 1}), ("text", "x")]
