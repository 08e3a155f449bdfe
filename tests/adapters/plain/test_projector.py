"""Records become frames as the table spells them, each with a cursor to resume after."""

from typing import Any

import pytest

import gateway.model as m
from adapters.plain import PlainProjector, plain_dialect
from mappings.language import Table, Vocabulary, load_table
from tests.support.plain_dialect import PlainFolder

DELTA = m.BlockDelta(block_id="b", message_id="m", kind=m.BlockKind.TEXT, delta="hi")


def loaded(folder: PlainFolder, change: Any = None) -> Table:
    file = folder.write(change)
    return load_table(file, Vocabulary.of(plain_dialect(file)))


def record(event: m.AnyEvent, seq: int = 7, scope_id: str = m.ROOT) -> m.Record:
    return m.Record(event=event, seq=seq, at=0.0, session_id="ses_1", turn_id="turn_1", scope_id=scope_id)


def test_a_frame_has_the_number_of_its_record_as_its_id(plain_folder: PlainFolder) -> None:
    [frame] = PlainProjector(loaded(plain_folder), "sse").feed(record(DELTA))
    assert (frame.body, frame.name, frame.cursor) == (b'id: 7\nevent: text\ndata: {"delta":"hi"}\n\n', "text", "7")


def test_an_event_that_the_table_leaves_out_has_no_frame(plain_folder: PlainFolder) -> None:
    projector = PlainProjector(loaded(plain_folder), "sse")
    assert projector.feed(record(m.NoticePosted(topic="t", title="T"))) == ()
    assert (projector.flush(0.0), projector.deadline) == ((), None)


@pytest.mark.parametrize(("level", "count"), [("dropped", 0), ("rejected", 0), ("full", 1), ("partial", 1)])
def test_sub_agents_are_heard_if_the_table_carries_them(plain_folder: PlainFolder, level: str, count: int) -> None:
    table = loaded(plain_folder, lambda table: table["support"].update(subagents=level))
    assert len(PlainProjector(table, "sse").feed(record(DELTA, scope_id="scope_1"))) == count


def test_json_frames_have_their_cursor_beside_them(plain_folder: PlainFolder) -> None:
    [frame] = PlainProjector(loaded(plain_folder), "json").feed(record(DELTA))
    assert (frame.body, frame.cursor) == (b'{"event":"text","data":{"delta":"hi"}}', 7)
