"""AAP's three modes on streams nobody wrote: nothing torn, text adds up, all modes tell the same."""

import orjson
from hypothesis import given
from hypothesis import strategies as st

import gateway.model as m
from adapters.aap.server.stream_options import StreamMode, StreamOptions
from tests.support.dialect_tables import dialect, table
from tests.support.dialects.aap.reader import TurnText, read, read_stream
from tests.support.record_streams import sessions


def frames(mode: StreamMode, records: list[m.Record]) -> list[bytes]:
    outbound = dialect("aap").projector(table("aap"), StreamOptions(mode))
    return [frame.body for record in records for frame in outbound.feed(record)]


def told(mode: StreamMode, records: list[m.Record]) -> list[TurnText]:
    if mode == "none":
        return [read(orjson.loads(frame)) for frame in frames(mode, records)]
    return read_stream(b"".join(frames(mode, records)))


@given(sessions())
def test_the_three_modes_tell_the_same(records: list[m.Record]) -> None:
    asked = ("confirm_continue", "choose_rollback")  # asks without a call are calls on the stream only
    modes = [told(mode, records) for mode in ("delta", "message", "none")]
    for heard in modes:
        for turn in heard:
            turn.calls = [call for call in turn.calls if call[1] not in asked]
    delta, message, none = modes
    assert delta == message == none


@given(sessions())
def test_text_adds_up(records: list[m.Record]) -> None:
    def whole(kind: m.BlockKind) -> str:
        return "".join(
            (r.event.text or "") if r.event.kind is kind else f"![image]({r.event.image.url})"
            for r in records if isinstance(r.event, m.BlockEnded) and r.scope_id == m.ROOT
            and (r.event.kind is kind or (kind is m.BlockKind.TEXT and r.event.image))
        )

    heard = told("delta", records)
    assert "".join(turn.text for turn in heard) == whole(m.BlockKind.TEXT)
    assert "".join(turn.thinking for turn in heard) == whole(m.BlockKind.THINKING)


@given(sessions())
def test_every_delta_is_a_frame_of_its_own(records: list[m.Record]) -> None:
    said = [r.event.delta for r in records if isinstance(r.event, m.BlockDelta) and r.scope_id == m.ROOT
            and r.event.kind is m.BlockKind.TEXT]
    heard = [frame for frame in frames("delta", records) if frame.startswith(b"event: text_delta\n")]
    pictures = sum(isinstance(r.event, m.BlockEnded) and r.event.image is not None and r.scope_id == m.ROOT
                   for r in records)
    assert len(heard) == len(said) + pictures


@given(sessions())
def test_only_the_results_of_server_tools_are_told(records: list[m.Record]) -> None:
    returned = [r.event.call_id for r in records if isinstance(r.event, m.ToolReturned) and r.scope_id == m.ROOT
                and r.event.origin is not m.ToolOrigin.CLIENT]
    assert [call_id for turn in told("delta", records) for call_id, _ in turn.results] == returned


@given(sessions(), st.sampled_from(["delta", "message", "none"]), st.data())
def test_a_projector_fed_from_the_turn_is_right_at_every_cursor(
    records: list[m.Record], mode: StreamMode, data: st.DataObject,
) -> None:
    starts = [at for at, record in enumerate(records) if isinstance(record.event, m.TurnStarted | m.TurnResumed)]
    start = data.draw(st.sampled_from([at for at in starts if isinstance(records[at].event, m.TurnStarted)]))
    whole, late = (dialect("aap").projector(table("aap"), StreamOptions(mode)) for _ in range(2))
    for record in records[:start]:
        whole.feed(record)
    assert [late.feed(record) for record in records[start:]] == [whole.feed(record) for record in records[start:]]
