"""An AAP client's ears, written from the protocol alone: what a turn said, whatever mode it was said in."""

from dataclasses import dataclass, field
from typing import Any

import orjson


@dataclass
class TurnText:
    """One POST's worth of conversation."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    results: list[tuple[str, Any]] = field(default_factory=list)
    stop: str | None = None


def events(stream: bytes) -> list[tuple[str, dict[str, Any]]]:
    """(event, data) pairs of a server-sent stream; comments are passed over."""
    found = []
    for block in stream.decode().split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = dict(line.split(": ", 1) for line in lines)
            assert set(fields) == {"event", "data"}, fields
            found.append((fields["event"], orjson.loads(fields["data"])))
    return found


def read_stream(stream: bytes) -> list[TurnText]:
    """What was heard between each turn_start and its turn_stop; nothing may be said outside."""
    turns: list[TurnText] = []
    for event, data in events(stream):
        if event == "turn_start":
            assert not turns or turns[-1].stop is not None, "a turn started inside another"
            turns.append(TurnText())
            continue
        assert turns, f"{event} before the first turn_start"
        turn = turns[-1]
        assert turn.stop is None, f"{event} after turn_stop"
        _hear(turn, event, data)
    assert not turns or turns[-1].stop is not None, "the stream was torn"
    return turns


def _hear(turn: TurnText, event: str, data: dict[str, Any]) -> None:
    if event in ("text_delta", "text"):
        turn.text += data["delta" if event == "text_delta" else "text"]
    elif event in ("thinking_delta", "thinking"):
        turn.thinking += data["delta" if event == "thinking_delta" else "thinking"]
    elif event == "tool_call":
        turn.calls.append((data["toolCallId"], data["name"], data["input"]))
    elif event == "tool_result":
        turn.results.append((data["toolCallId"], data["content"]))
    else:
        assert event == "turn_stop", f"AAP has no event {event}"
        turn.stop = data["stopReason"]


def read(body: dict[str, Any]) -> TurnText:
    """The same from the body of a turn that was not streamed."""
    heard = TurnText(stop=body["stopReason"])
    for message in body["messages"]:
        if message["role"] == "tool":
            heard.results.append((message["toolCallId"], message["content"]))
            continue
        assert message["role"] == "assistant", message
        for block in message["content"]:
            if block["type"] == "text":
                heard.text += block["text"]
            elif block["type"] == "thinking":
                heard.thinking += block["thinking"]
            else:
                assert block["type"] == "tool_use", block
                heard.calls.append((block["toolCallId"], block["name"], block["input"]))
    return heard
