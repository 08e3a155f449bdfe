"""From the text of a line to a frame."""

import pytest

from gateway.translate.frames import NotAFrame, frames_of
from gateway.upstream import Frame


@pytest.mark.parametrize(("text", "frames"), [
    ('{"event": "x", "data": {"a": 1}}', [Frame("x", {"a": 1})]),
    ('{"event": "x", "data": {"a": 1}, "id": "7"}', [Frame("x", {"a": 1}, "7")]),
    ('{"event": "x", "delta": "w"}', [Frame("x", {"event": "x", "delta": "w"})]),
    ('{"type": "event", "event": "x", "payload": {}}', [Frame("x", {"type": "event", "event": "x", "payload": {}})]),
    ('{"type": "agent.message"}', [Frame("agent.message", {"type": "agent.message"})]),
    ('{"a": 1}', [Frame("", {"a": 1})]),
    ('["chat:end", {"a": 1}]', [Frame("chat:end", {"a": 1})]),
    ('["bare"]', [Frame("bare", None)]),
    ('42["chat:end",{"a":1}]', [Frame("chat:end", {"a": 1})]),
    ('42/room,["chat:end",{"a":1}]', [Frame("chat:end", {"a": 1})]),
    ('4217["chat:end",{"a":1}]', [Frame("chat:end", {"a": 1})]),
    ('40{"sid":"x"}\x1e42["a",{}]\x1e2', [Frame("a", {})]),
    ("", []), ("2", []), ("3probe", []), ('0{"sid":"x"}', []), ("40", []), ('430[{"ok":true}]', []), ("41", []),
])
def test_a_text_says_these_frames(text: str, frames: list[Frame]) -> None:
    assert frames_of(text) == frames


@pytest.mark.parametrize("text", ["nonsense", '"words"', "[]", "[1]", "{", "null", '42["half'])
def test_what_is_no_frame_is_refused(text: str) -> None:
    with pytest.raises(NotAFrame):
        frames_of(text)
