"""The traces of turns: who decides on them, which spans are exported, and turns that another process began."""

import gateway.model as m
from gateway.telemetry import Span
from gateway.trace_context import TRACEPARENT, read_traceparent, within_trace
from tests.support.traced_turns import (
    CLIENT,
    ENDED,
    HEADER,
    STARTED,
    TRACE,
    TURN,
    asked,
    call,
    records,
    resolved,
    times,
    tracer,
)


def test_storing_takes_until_the_log_reports_it() -> None:
    spans: list[Span] = []
    tracer(spans).committed(records(STARTED, ENDED))
    stored = {span.name: span for span in spans if span.name.startswith("store ")}
    assert list(stored) == ["store turn.started", "store turn.ended"]
    assert times(stored["store turn.ended"]) == (102, 1000)


def test_a_turn_without_a_trace_and_one_that_is_not_sampled_make_no_spans() -> None:
    for trace in (None, f"00-{TRACE}-{TURN}-00", "nonsense"):
        spans: list[Span] = []
        tracer(spans).committed(records(m.TurnStarted(command_id="cmd_1", trace=trace), call("c1", "search"), ENDED))
        assert spans == []


def test_a_turn_of_another_process_goes_on_here_and_nothing_is_exported_twice() -> None:
    told = records(STARTED, m.MessageStarted(message_id="m1"), m.MessageEnded(message_id="m1"), asked("r1"),
                   resolved("r1"), ENDED)
    spans: list[Span] = []
    second = tracer(spans)
    second.restored(told[:4])
    second.committed(told[4:])
    assert [span.name for span in spans] == ["ask continuation", "invoke_agent demo", "store turn.ended"]
    assert times(spans[0]) == (104, 105) and times(spans[1]) == (101, 106)


def test_a_client_gives_its_trace_and_decides_whether_it_is_recorded() -> None:
    one = tracer([], share=0.0)
    with within_trace(f"00-{TRACE}-{CLIENT}-01"):
        assert one.begin() == (f"00-{TRACE}-0000000000000001-01", CLIENT)
    with within_trace(f"00-{TRACE}-{CLIENT}-00"):
        assert tracer([]).begin() == (f"00-{TRACE}-0000000000000001-00", CLIENT)
    assert TRACEPARENT.get() == ""
    assert one.begin()[0].endswith("-00") and one.begin()[1] is None
    assert tracer([]).begin()[0].endswith("-01")


def test_the_parent_of_a_turn_is_the_span_of_the_client() -> None:
    spans: list[Span] = []
    tracer(spans).committed(records(m.TurnStarted(command_id="c", trace=HEADER, trace_parent=CLIENT), ENDED))
    assert next(span for span in spans if span.name == "invoke_agent demo").parent_id == int(CLIENT, 16)


def test_a_header_that_is_not_valid_is_no_header() -> None:
    future = f"01-{TRACE}-{TURN}-01-more"
    assert read_traceparent(HEADER) == read_traceparent(future) == (int(TRACE, 16), int(TURN, 16), True)
    for wrong in ("", "01", f"ff-{TRACE}-{TURN}-01", f"00-{TRACE}-{TURN}-01-more", f"00-{'0' * 32}-{TURN}-01",
                  f"00-{TRACE}-{'0' * 16}-01", HEADER.upper(), f"{HEADER}\r\nx: y"):
        assert read_traceparent(wrong) is None
