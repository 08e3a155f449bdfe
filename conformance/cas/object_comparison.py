"""Two representations of one object compared: members that both have must be equal; either may have more.

What does not fit its schema is the failure of whom its shape belongs to, and is not compared.
"""

from collections.abc import Sequence
from typing import Any

from conformance.cas.requirement_owners import SCHEMAS
from conformance.cas.run import Body, is_piece
from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.expect import Failed


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


def fitting_members(schema: str, first: Body, second: Body) -> tuple[Body, Body]:
    """Two objects without the members that do not fit the schema in one of them."""
    found = [*SCHEMAS.problems(schema, first), *SCHEMAS.problems(schema, second)]
    wrong = {problem.split(":")[0].split("/")[1] for problem in found}
    one, other = ({name: item for name, item in value.items() if name not in wrong} for value in (first, second))
    return one, other


def schema_of(event: Body) -> str:
    """The schema of events of this type, or that of all events."""
    name = f"event.{event.get('type')}"
    return name if name in SCHEMAS.names else "event"


def same_events(what: str, first: Sequence[Body], second: Sequence[Body]) -> None:
    """Expect these to be the same events, told twice; only their processing may have gone on meanwhile."""
    with expect.owned("CAS-SSE-05"):
        expect.equal(what, [event["id"] for event in first], [event["id"] for event in second])
    others = [pair for event, again in zip(first, second, strict=True) if (pair := contradicting(event, again))]
    turns = [[event.get("turn_id") for event in events] for events in zip(*others, strict=True)]
    with expect.owned("CAS-EV-10"):
        expect.equal(f"the turn_ids of {what}", *(turns or ([], [])))
    for event, again in others:
        with expect.owned("CAS-EV-01"):
            agree(f"{what}, {event.get('type')}", event, again)


def contradicting(event: Body, again: Body) -> tuple[Body, Body] | None:
    """What fits the schemas of two accounts of one event, if that contradicts itself; processing may go on between."""
    if shared(event, again) == shared(again, event):
        return None
    first, second = fitting_members(schema_of(event), event, again)
    first, second = fitting_members(schema_of(again), _steady(first), _steady(second))
    return (first, second) if shared(first, second) != shared(second, first) else None


def in_listed_order(told: Sequence[Body], listed: Sequence[Body]) -> None:
    """Expect a stream to have told what is listed between its first and its last event, each event once."""
    names, seen = [event.get("id") for event in listed], [event["id"] for event in told if not is_piece(event)]
    if seen and set(seen) <= set(names):
        between = listed[names.index(seen[0]) : names.index(seen[-1]) + 1]
        wanted = [event["id"] for event in between if not is_piece(event)]
        expect.that(seen == wanted, f"the listed events {expect.show(wanted)}", seen, "CAS-SSE-05")


def note_contradictions(departures: Departures, told: Sequence[Body], listed: Sequence[Body]) -> None:
    """Note where a stream has told an event otherwise than it is listed: what is judged by it may fail for that."""
    names = [event.get("id") for event in listed]
    known = {name: event for name, event in zip(names, listed, strict=True) if names.count(name) == 1}
    for event in told:
        if not is_piece(event) and event["id"] in known:
            try:
                same_events("the streamed events", [known[event["id"]]], [event])
            except Failed as failure:
                owner = failure.owner or "CAS-EV-01"
                departures.note(owner, failure.expected, failure.seen, is_misleading=True)


def unlisted(listed: Sequence[Body], event: Body) -> str:
    """Who is to blame for an event that is not in the list: its id, if it is there by another one, or the list."""
    return "CAS-EV-01" if _by_another_id(listed, event) else "CAS-EV-11"


def unheard(listed: Sequence[Body], accepted: Body) -> str:
    """Who is to blame for an accepted event that is neither told nor listed."""
    return "CAS-EV-01" if _by_another_id(listed, accepted) else "CAS-EV-02"


def _by_another_id(listed: Sequence[Body], event: Body) -> bool:
    alike = (item for item in listed if item.get("created_at") == event.get("created_at"))
    return any(item.get("type") == event.get("type") for item in alike)


def told_as_listed(listed: list[Body], before: int, told: list[Body]) -> None:
    """Expect what was told to be what is listed: all that came since, and perhaps some of what there was before.

    Pieces of events are neither told nor listed for this judgement: that they come unasked is another sentence.
    """
    before -= sum(map(is_piece, listed[:before]))
    told, listed = ([event for event in events if not is_piece(event)] for events in (told, listed))
    names, seen = [event["id"] for event in listed], [event["id"] for event in told]
    is_renamed = len(listed) >= len(told) > 0 and not set(names).intersection(seen)
    expect.that(not is_renamed, f"events to be listed by the ids {expect.show(seen)}", names, "CAS-EV-01")
    for event in told:
        if event["id"] not in names:
            expect.fail(f"the streamed event {event['id']} in the list", names, unlisted(listed, event))
    start = min(before, names.index(seen[0]))
    same_events("the streamed events", listed[start : names.index(seen[-1]) + 1], told)


def _steady(event: Body) -> Body:
    return {name: value for name, value in event.items() if name != "processed_at"}
