"""What can happen: names, variants and tags agree with each other."""

from typing import get_args

import pytest

import gateway.model as m


def test_the_list_and_the_union_name_the_same() -> None:
    assert set(get_args(m.AnyEvent)) == set(m.EVENTS)


@pytest.mark.parametrize("event", m.EVENTS, ids=lambda event: event.name)
def test_an_event_is_tagged_with_its_name(event: type[m.Event]) -> None:
    assert event.__struct_config__.tag == event.name
    assert event.__struct_config__.frozen


def test_the_names_are_those_of_the_design() -> None:
    assert [event.name for event in m.EVENTS] == [
        "session.created", "session.updated", "session.compacted", "session.rewound", "session.closed",
        "input.accepted", "input.requested", "input.resolved",
        "turn.started", "turn.suspended", "turn.resumed", "turn.ended",
        "message.started", "message.annotated", "message.ended",
        "block.started", "block.delta", "block.ended",
        "tool.status", "tool.output", "tool.returned",
        "scope.opened", "scope.status", "scope.message",
        "fault.raised", "notice.posted", "custom",
    ]


def test_a_variant_is_one_of_the_variants() -> None:
    call = m.ToolCall(call_id="c", name="t")
    for event, variant in [
        (m.SessionClosed(reason=m.CloseReason.ARCHIVED), "archived"),
        (m.InputAccepted(command_id="c", command=m.Interrupt()), "interrupt"),
        (m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TOOL_USE, call=call), "tool_use"),
        (m.BlockEnded(block_id="b", message_id="m", kind=m.BlockKind.TOOL_USE, call=call, torn=True), "torn"),
    ]:
        assert event.variant == variant
        assert variant in event.variants
