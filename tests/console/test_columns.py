"""A column shows exactly the frames of its dialect, each with the row that made it, and why there is none where so."""

import orjson
import pytest
from hypothesis import given

import gateway.model as m
from gateway.console.columns import ColumnOptions, ConsoleColumns, DialectColumn, wire_text
from gateway.console.trace import SilenceNotes
from gateway.ports import Frame
from mappings.language import builtin_path
from tests.support.dialect_parts import live_options
from tests.support.dialect_tables import DIALECTS, dialect, table
from tests.support.record_streams import sessions


def column(name: str) -> DialectColumn:
    return DialectColumn(dialect(name), table(name), SilenceNotes(table(name)), live_options(name))


def items(frames: tuple[Frame, ...]) -> list[dict]:
    return [orjson.loads(frame.body) for frame in frames]


@given(records=sessions())
def test_a_column_has_the_frames_of_its_dialect_in_their_order(records: list[m.Record]) -> None:
    for name in DIALECTS:
        its = dialect(name)
        projector, shown = its.projector(table(name), live_options(name)), column(name)
        due, sent, seen = None, list[str](), list[dict]()
        for record in records:
            due = projector.deadline
            early = projector.flush(due) if due is not None and due <= record.at else ()
            sent += [wire_text(frame, its.framings[0]) for frame in (*early, *projector.feed(record))]
            seen += items(shown.feed(record))
        assert [frame["text"] for item in seen for frame in item["frames"]] == sent, name


@given(records=sessions())
def test_every_record_has_an_item_with_frames_or_a_reason(records: list[m.Record]) -> None:
    for name in DIALECTS:
        shown = column(name)
        seen = [item for record in records for item in items(shown.feed(record))]
        assert [item["seq"] for item in seen if item["due"] is None] == [record.seq for record in records]
        for item in seen:
            assert bool(item["frames"]) != bool(item["silence"] and item["silence"]["note"]), (name, item)


@given(records=sessions())
def test_who_comes_later_is_shown_the_same(records: list[m.Record]) -> None:
    """Skipping records leaves a column in the state in which feeding them would have left it."""
    for name in DIALECTS:
        first, half = column(name), len(records) // 2
        whole = [first.feed(record) for record in records]
        second = column(name)
        for record in records[:half]:
            second.skip(record)
        late = [second.feed(record) for record in records[half:]]
        assert [[one["frames"] for one in items(frames)] for frames in late] == [
            [one["frames"] for one in items(frames)] for frames in whole[half:]], name


@given(records=sessions())
def test_a_frame_names_a_row_of_its_table(records: list[m.Record]) -> None:
    for name in DIALECTS:
        lines, shown = builtin_path(name).read_text("utf-8").splitlines(), column(name)
        for frame in (frame for record in records for item in items(shown.feed(record)) for frame in item["frames"]):
            assert frame["cue"], (name, frame)
            assert 0 < frame["line"] <= len(lines), (name, frame)


@pytest.mark.parametrize("name", DIALECTS)
def test_an_empty_row_is_named_with_its_line_and_its_own_note(name: str) -> None:
    lines, notes = builtin_path(name).read_text("utf-8").splitlines(), SilenceNotes(table(name))
    for event in m.EVENTS:
        for cue in {table(name).cue_of(event, variant) for variant in event.variants or ("",)}:
            if (place := table(name).rows.position(cue)) is not None:
                assert lines[place.line - 1].strip().startswith(f"{cue}:"), (cue, place)
                if comment := table(name).rows.comment(cue):
                    assert comment.split()[0] in "\n".join(lines)
    record = m.Record(seq=1, at=1.0, session_id="sess_1", event=m.NoticePosted(topic="x", title="t"))
    assert notes.silence(record, []).note


def test_a_column_is_made_with_the_table_of_now() -> None:
    class Parts:
        def __init__(self) -> None:
            self.dialects = {name: dialect(name) for name in DIALECTS}
            self.tables = {name: table(name) for name in DIALECTS}

    class Streams:
        def projector(self, name: str, options: object) -> object:
            return (name, options)

        def replays_turn(self, name: str) -> bool:
            return dialect(name).replay_from == "turn"

    parts = Parts()
    columns = ConsoleColumns(Streams(), lambda: parts)
    for name in DIALECTS:
        made = columns.projector(f"console:{name}", ColumnOptions(live_options(name)))
        assert isinstance(made, DialectColumn)
        assert columns.replays_turn(f"console:{name}") == columns.replays_turn(name)
        assert columns.projector(name, live_options(name)) == (name, live_options(name)), "a client's own stream"
        assert columns.notes(name) is columns.notes(name)
