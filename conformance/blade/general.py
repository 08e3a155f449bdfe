"""Section general: fields that are always there, times, and ids."""

import re
from typing import Any

from conformance.blade.damaged_members import sound
from conformance.blade.examination import BladeExamination
from conformance.blade.scene import scene
from conformance.kit import expect
from conformance.kit.case import requirement

UTC = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|\+00:00)$")
NEEDED = (
    "id", "sequence", "turn_id", "loop_id", "kind", "role", "status", "blocks", "tool_calls", "duration_ms",
    "context_window",
)  # fmt: skip


@requirement("BL-GEN-01")
async def what_is_not_optional_is_there(exam: BladeExamination) -> None:
    """The turns of a chat with a tool, and the history, have every field that is not optional."""
    seen = await scene(exam, "tool")
    for turn in [*(turn.final for turn in seen.turns), *seen.kept()]:
        expect.subset("the members of a turn", NEEDED, turn)


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
    seen = await scene(exam, "text")
    told = times([seen.look(), seen.kept(), [turn.final for turn in seen.turns]], [])
    expect.that(len(told) >= 2, "times on the session", repr(seen.look()))
    for value in told:
        is_utc(sound(value))


def is_utc(value: Any) -> None:
    """Expect a time in UTC."""
    fits = isinstance(value, str) and UTC.match(value) is not None
    expect.that(fits, "a time such as 2026-01-01T00:00:00Z", value)


@requirement("BL-GEN-03")
async def ids_have_the_prefixes_of_the_examples(exam: BladeExamination) -> None:
    """Sessions, entries, turns and tool calls have ids that begin as in the examples."""
    seen = await scene(exam, "tool")
    expect.that(seen.session.startswith("sess_"), "a session id with the prefix sess_", seen.session)
    for turn in seen.chat().turns:
        expect.that(turn.turn_id.startswith("turn_"), "a turn_id with the prefix turn_", turn.turn_id)
        expect.that(turn.final["id"].startswith("entry_"), "an entry id with the prefix entry_", turn.final["id"])
    call = seen.chat().call()
    expect.that(call["id"].startswith("tc_"), "a tool call id with the prefix tc_", call["id"])
