"""From the text of a line to a frame."""

import pytest

from gateway.ports.remote import ParsedFrame
from gateway.translate.recorded_frames import InvalidFrame, parse_frames


@pytest.mark.parametrize(("text", "frames"), [
    ('{"event": "x", "data": {"a": 1}}', [ParsedFrame("x", {"a": 1})]),
    ('{"event": "x", "data": {"a": 1}, "id": "7"}', [ParsedFrame("x", {"a": 1}, "7")]),
    ('{"event": "x", "delta": "w"}', [ParsedFrame("x", {"event": "x", "delta": "w"})]),
    ('{"type": "event", "event": "x", "payload": {}}',
     [ParsedFrame("x", {"type": "event", "event": "x", "payload": {}})]),
    ('{"type": "agent.message"}', [ParsedFrame("agent.message", {"type": "agent.message"})]),
    ('{"a": 1}', [ParsedFrame("", {"a": 1})]),
    ('["chat:end", {"a": 1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('["bare"]', [ParsedFrame("bare", None)]),
    ('42["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('42/room,["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('4217["chat:end",{"a":1}]', [ParsedFrame("chat:end", {"a": 1})]),
    ('40{"sid":"x"}\x1e42["a",{}]\x1e2', [ParsedFrame("a", {})]),
    ("", []), ("2", []), ("3probe", []), ('0{"sid":"x"}', []), ("40", []), ('430[{"ok":true}]', []), ("41", []),
])
def test_a_text_says_these_frames(text: str, frames: list[ParsedFrame]) -> None:
    assert parse_frames(text) == frames


@pytest.mark.parametrize("text", ["nonsense", '"words"', "[]", "[1]", "{", "null", '42["half'])
def test_what_is_no_frame_is_refused(text: str) -> None:
    with pytest.raises(InvalidFrame):
        parse_frames(text)
