"""Two representations of one object compared: members that both have must be equal; either may have more."""

from collections.abc import Sequence
from typing import Any

from conformance.cas.conversation import is_piece
from conformance.cas.run import Body
from conformance.kit import expect


def shared(value: Any, other: Any) -> Any:
    """The value without the members that the other does not have."""
    if isinstance(value, dict) and isinstance(other, dict):
        return {name: shared(item, other[name]) for name, item in value.items() if name in other}
    if isinstance(value, list) and isinstance(other, list) and len(value) == len(other):
        return [shared(item, its) for item, its in zip(value, other, strict=True)]
    return value


def agree(what: str, first: Any, second: Any) -> None:
    """Expect that the two do not contradict each other."""
    expect.equal(what, shared(first, second), shared(second, first))


def same_events(what: str, first: Sequence[Body], second: Sequence[Body]) -> None:
    """Expect these to be the same events, told twice; only their processing may have gone on meanwhile."""
    with expect.owned("CAS-SSE-05"):
        expect.equal(what, [_named(event) for event in first], [_named(event) for event in second])
    turns = [[event.get("turn_id") for event in events] for events in (first, second)]
    with expect.owned("CAS-EV-10"):
        expect.equal(f"the turn_ids of {what}", *turns)
    for event, again in zip(first, second, strict=True):
        with expect.owned("CAS-EV-01"):
            agree(f"{what}, {event['type']}", _steady(event), _steady(again))


def told_as_listed(listed: list[Body], before: int, told: list[Body]) -> None:
    """Expect what was told to be what is listed: all that came since, and perhaps some of what there was before.

    Pieces of events are neither told nor listed for this judgement: that they come unasked is another sentence.
    """
    before -= sum(map(is_piece, listed[:before]))
    told, listed = ([event for event in events if not is_piece(event)] for events in (told, listed))
    names, seen = [event["id"] for event in listed], [event["id"] for event in told]
    is_renamed = len(listed) >= len(told) > 0 and not set(names).intersection(seen)
    expect.that(not is_renamed, f"events to be listed by the ids {expect.show(seen)}", names, "CAS-EV-01")
    with expect.owned("CAS-EV-11"):
        expect.subset("the listed events", seen, names)
    start = min(before, names.index(seen[0]))
    same_events("the streamed events", listed[start : names.index(seen[-1]) + 1], told)


def _named(event: Body) -> tuple[str, str]:
    return event["type"], event["id"]


def _steady(event: Body) -> Body:
    return {name: value for name, value in event.items() if name != "processed_at"}
