"""Results read back: whatever the table writes, and whatever else a tool may give."""

from typing import Any

import pytest

import gateway.model as m
from adapters.blade.client.readers import read_result
from adapters.blade.server import views
from adapters.blade.server.turn_state import TurnCall
from tests.support.dialect_tables import table

PARTS: m.Content = (
    m.TextPart(text="two"), m.ImagePart(url="https://example.test/a.png"), m.FilePart(name="a.txt", file_id="file_1"),
    m.DataPart(type="card", content={"x": 1}),
)


@pytest.mark.parametrize("meta", [None, {"bridge": {"action": "x", "payload": {}}}])
@pytest.mark.parametrize("content", ["", "42", '{"ok":true}', PARTS, ()])
def test_what_the_table_writes_is_read(content: m.Content, meta: dict[str, Any] | None) -> None:
    written = views.result(table("blade"), TurnCall("tc_1", "calc", content=content, meta=meta))
    assert read_result(written) == (content, meta)


@pytest.mark.parametrize(("result", "content"), [
    (None, ""), (7, "7"), ({"ok": True}, '{"ok":true}'), ([1, 2], "[1,2]"), ([{"type": "text"}], '[{"type":"text"}]'),
    ({"_meta": {"ui": {}}}, ""), ({"_meta": 1}, '{"_meta":1}'), ({"_meta": {}, "a": 1}, '{"a":1}'),
])
def test_what_others_write_is_read_as_json(result: Any, content: m.Content) -> None:
    assert read_result(result)[0] == content
