"""Section general: fields that are always there, times, and ids."""

import re
from typing import Any

from conformance.blade.examination import BladeExamination
from conformance.kit import expect
from conformance.kit.case import requirement

UTC = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|\+00:00)$")


@requirement("BL-GEN-01")
async def what_is_not_optional_is_there(exam: BladeExamination) -> None:
    """A session, the turns of a chat with a tool, and the history have every field that is not optional."""
    talk = await exam.open()
    chat = await talk.play("tool")
    await talk.info()
    known = {turn["turn_id"] for turn in await talk.messages()}
    for turn in chat.turns:
        exam.fit("turn", turn.final, f"turn:end of {turn.turn_id}")
        expect.that(turn.turn_id in known, f"{turn.turn_id} in the history", sorted(known))


def times(body: Any, found: list[Any]) -> list[Any]:
    """Every value of a member whose name says it is a time."""
    for name, value in body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ():
        if isinstance(name, str) and name.endswith("_at") and value is not None:
            found.append(value)
        times(value, found)
    return found


@requirement("BL-GEN-02")
async def times_are_in_utc(exam: BladeExamination) -> None:
    """created_at, updated_at and started_at are ISO 8601 in UTC, on sessions and on turns."""
    talk = await exam.open()
    chat = await talk.play("text")
    session = await exam.asked("GET", talk.path)
    reply = await exam.asked("GET", f"{talk.path}/messages")
    seen = times([session, reply, [turn.final for turn in chat.turns]], [])
    expect.that(len(seen) >= 2, "times on the session", session)
    for value in seen:
        is_utc(value)


def is_utc(value: Any) -> None:
    """Expect a time in UTC."""
    fits = isinstance(value, str) and UTC.match(value) is not None
    expect.that(fits, "a time such as 2026-01-01T00:00:00Z", value)


@requirement("BL-GEN-03")
async def ids_have_the_prefixes_of_the_examples(exam: BladeExamination) -> None:
    """Sessions, entries, turns and tool calls have ids that begin as in the examples."""
    talk = await exam.open()
    chat = await talk.play("tool")
    expect.that(talk.session.startswith("sess_"), "a session id with the prefix sess_", talk.session)
    for turn in chat.turns:
        expect.that(turn.turn_id.startswith("turn_"), "a turn_id with the prefix turn_", turn.turn_id)
        expect.that(turn.final["id"].startswith("entry_"), "an entry id with the prefix entry_", turn.final["id"])
    call = chat.call()
    expect.that(call["id"].startswith("tc_"), "a tool call id with the prefix tc_", call["id"])
