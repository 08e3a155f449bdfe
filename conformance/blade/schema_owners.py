"""Owners of schemas: which requirement owns a member of a body, so that one wrong member gives one finding."""

from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

import orjson

from conformance.blade.damaged_members import Damaged, Path, replaced, whole
from conformance.kit import expect
from conformance.kit.departures import Departures
from conformance.kit.schemas import Schemas

SCHEMAS = Schemas(FilePath(__file__).parent / "schemas")
Owner = Callable[[Path, bool, Any], str]
"""(path of a member, whether it is missing, the body) → the requirement that speaks of the member."""

SESSION = {
    "id": "BL-SESS-02",
    "intent": "BL-SESS-03",
    "status": "BL-SESS-04",
    "created_at": "BL-GEN-02",
    "updated_at": "BL-GEN-02",
    "user_id": "BL-SESS-11",
    "solution_id": "BL-SESS-12",
    "biz_role_id": "BL-SESS-13",
    "model": "BL-SESS-14",
    "shared": "BL-SESS-15",
    "is_pinned": "BL-SESS-15",
    "memory_enabled": "BL-SESS-15",
    "is_persistent": "BL-SESS-15",
    "replay_state": "BL-SESS-16",
}
TURN = {
    "session_id": "BL-GAP-10",
    "id": "BL-TURN-02",
    "sequence": "BL-TURN-03",
    "turn_id": "BL-TURN-04",
    "loop_id": "BL-TURN-05",
    "kind": "BL-TURN-06",
    "role": "BL-TURN-07",
    "status": "BL-TURN-08",
    "model": "BL-TURN-10",
    "usage": "BL-TURN-11",
    "duration_ms": "BL-TURN-12",
    "started_at": "BL-TURN-13",
    "context_window": "BL-TURN-14",
    "parent_fork_tool_call_id": "BL-TURN-16",
    "trigger": "BL-TURN-18",
}
COMPACTION = (
    "compaction_id",
    "summary_preview",
    "summary_full",
    "archived_count",
    "tokens_before",
    "tokens_after",
    "saved_ratio",
)
CONTENT = {
    "text": "BL-BLK-03",
    "thinking": "BL-BLK-04",
    "tool_use": "BL-BLK-05",
    "tool_result": "BL-BLK-06",
    "tool_ui": "BL-BLK-07",
    "tool_bridge": "BL-BLK-08",
    "system_notification": "BL-BLK-09",
    "mode_change": "BL-BLK-10",
    "planning_enter": "BL-BLK-11",
    "planning_exit": "BL-BLK-11",
    "plan_status": "BL-BLK-12",
    "ask_user_answer": "BL-BLK-13",
}
CALL = {
    "id": "BL-TC-02",
    "tool_name": "BL-TC-02",
    "display_name": "BL-TC-03",
    "arguments": "BL-TC-04",
    "status": "BL-TC-05",
    "duration_ms": "BL-TC-07",
    "pending_question_ref": "BL-TC-08",
}
PATCHES = {
    "add_content": "BL-PATCH-03",
    "add_tool_call": "BL-PATCH-06",
    "tool_result": "BL-PATCH-07",
    "set_status": "BL-PATCH-08",
    "set_tool_status": "BL-PATCH-09",
}
MEMORY = {"type": "BL-MEM-02", "content": "BL-MEM-03", "record_type": "BL-MEM-04"}


def _session(path: Path, is_missing: bool, body: Any) -> str:
    return "BL-SESS-01" if is_missing or not path else SESSION.get(str(path[0]), "BL-SESS-01")


def _turn(path: Path, is_missing: bool, body: Any) -> str:
    """A member that is missing breaks the rule about optional members; one of a wrong type, its own."""
    if len(path) > 1 and path[0] == "blocks":
        return _block(path[2:], is_missing, body["blocks"][path[1]])
    if len(path) > 1 and path[0] == "tool_calls":
        return _call(path[2:], is_missing)
    if len(path) > 1 and path[0] == "memory_refs":
        return "BL-MREF-01"
    if not path or (is_missing and len(path) == 1):
        return "BL-GEN-01"
    if path[0] in ("blocks", "tool_calls"):
        return "BL-TURN-09"
    if path[0] == "memory_refs":
        return "BL-TURN-15"
    return "BL-TURN-17" if path[0] in COMPACTION else TURN[str(path[0])]


def _block(path: Path, is_missing: bool, block: Any) -> str:
    if path[:1] == ("content",) and isinstance(block, dict):
        return CONTENT.get(str(block.get("type")), "BL-BLK-01")
    return "BL-BLK-02" if path == ("type",) and not is_missing else "BL-BLK-01"


def _call(path: Path, is_missing: bool) -> str:
    if not path or (is_missing and len(path) == 1):
        return "BL-TC-01"
    return CALL[str(path[0])]


def _start(path: Path, is_missing: bool, body: Any) -> str:
    """turn:start need not be complete; but it must say whose turn begins, and which."""
    if (is_missing and len(path) == 1) or not path:
        return "BL-FLOW-03" if path == ("turn_id",) else "BL-FLOW-04"
    return _turn(path, is_missing, body)


def _patch(path: Path, is_missing: bool, body: Any) -> str:
    if path == ("patch_type",) and not is_missing:
        return "BL-PATCH-02"
    if path[:1] != ("data",) or len(path) == 1:
        return "BL-PATCH-01"
    kind, member = str(body["patch_type"]), path[1:]
    if kind == "add_content" and not is_missing:
        if member == ("text_delta",):
            return "BL-PATCH-04"
        return _block(member, is_missing, body["data"])
    return PATCHES.get(kind, "BL-PATCH-02")


def _memory(path: Path, is_missing: bool, body: Any) -> str:
    return "BL-MEM-01" if is_missing or not path else MEMORY.get(str(path[0]), "BL-MEM-01")


def _question(path: Path, is_missing: bool, body: Any) -> str:
    named = {"multiSelect": "BL-FLOW-12", "source_loop": "BL-FLOW-13"}
    return named.get(str(path[-1]), "BL-FLOW-11") if path else "BL-FLOW-11"


def _card(path: Path, is_missing: bool, body: Any) -> str:
    if path[:1] in (("resourceHTML",), ("resourceUri",)):
        return "BL-META-05"
    return "BL-META-04" if is_missing or not path else "BL-META-06"


def _history(path: Path, is_missing: bool, body: Any) -> str:
    """The list itself, and the members that no turn of the type page has, are a companion page's."""
    if len(path) < 2 or (is_missing and len(path) == 2 and path[1] in (*COMPACTION, "trigger", "failure_reason")):
        return "BL-REST-02"
    return _turn(path[1:], is_missing, body[path[0]])


def _in_items(owner: str, inner: Owner) -> Owner:
    """Pages of things that have owners of their own."""

    def owned(path: Path, is_missing: bool, body: Any) -> str:
        within = len(path) > 1 and path[0] == "items"
        return inner(path[2:], is_missing, body["items"][path[1]]) if within else owner

    return owned


def _full_session(path: Path, is_missing: bool, body: Any) -> str:
    is_own = path and path[0] in ("solution", "primary_skill_snapshot", "session_setup", "viewer_role")
    return "BL-REST-06" if is_own else _session(path, is_missing, body)


def _full_start(path: Path, is_missing: bool, body: Any) -> str:
    return "BL-GAP-10" if not path or (is_missing and len(path) == 1) else _turn(path, is_missing, body)


def _end(path: Path, is_missing: bool, body: Any) -> str:
    return "BL-GAP-10" if path == ("session_id",) else "BL-FLOW-04"


WHOLE = {
    "event.chat-end.full": "BL-WS-08",
    "event.session-updated": "BL-WS-09",
    "event.workspace-files_changed": "BL-WS-09",
    "event.system-error": "BL-WS-09",
    "event.system-notification": "BL-WS-09",
    "ack.compact": "BL-WS-07",
    "ack.stop": "BL-GAP-22",
    "bridge": "BL-META-02",
    "key": "BL-KEY-01",
    "task": "BL-TASK-01",
    "run": "BL-TASK-02",
    "calendar": "BL-REST-18",
    "created": "BL-REST-01",
    "error": "BL-REST-03",
    "history": "BL-REST-09",
    "checkpoint": "BL-REST-10",
    "preview": "BL-REST-11",
    "replay": "BL-REST-11",
    "share": "BL-REST-12",
    "listing": "BL-REST-14",
    "uploaded": "BL-REST-14",
    "extra": "BL-REST-15",
    "models": "BL-REST-19",
    "me": "BL-REST-20",
    "version": "BL-REST-21",
}
"""Bodies that one requirement speaks of as a whole."""
OWNERS: dict[str, Owner] = {
    "session": _session,
    "session.full": _full_session,
    "sessions": _in_items("BL-REST-05", _session),
    "turn": _turn,
    "messages": _history,
    "event.chat-start": lambda path, is_missing, body: "BL-GAP-10" if path else "BL-FLOW-04",
    "event.turn-start": _start,
    "event.turn-start.full": _full_start,
    "event.turn-patch": _patch,
    "event.turn-end": _turn,
    "event.chat-end": _end,
    "question": _question,
    "ui": _card,
    "memory": _memory,
    "memories": _in_items("BL-REST-16", _memory),
}


def read(departures: Departures, schema: str, body: Any, what: str, owner: str | None = None) -> Any:
    """The body, held to its schema: what is wrong is noted with its owner, and damaged in what is given back.

    With an owner, whatever is missing or of a wrong type is the owner's.
    """
    found = whole(body)
    for path, damaged in damages(schema, body, what, owner):
        expected, seen, whose = damaged.failure
        departures.note(whose, expected, seen)
        found = replaced(found, path, damaged)
    return found


def expect_shape(schema: str, body: Any, what: str) -> None:
    """Expect the body to fit its schema; what does not is the failure of the requirement that speaks of it."""
    for _, damaged in damages(schema, body, what):
        damaged.look()


class OwnedShapes:
    """Holds bodies to schemas; what does not fit is the failure of the requirement that speaks of the member."""

    def fit(self, name: str, value: Any, what: str) -> None:
        expect_shape(name, value, what)


def damages(schema: str, body: Any, what: str, owner: str | None = None) -> Iterator[tuple[Path, Damaged]]:
    """What of a body does not fit its schema, each with its path."""
    owner = owner or WHOLE.get(schema)
    token = expect.OWNER.set(owner)  # members have owners of their own, whoever reads the body
    try:
        errors = [(it.path, it.is_missing, it.message) for it in SCHEMAS.errors(schema, body, owner)]
    finally:
        expect.OWNER.reset(token)
    for path, is_missing, message in (*errors, *_arguments(schema, body)):
        whose = owner or OWNERS[schema](path, is_missing, body)
        seen = f"/{'/'.join(map(str, path))}: {expect.show(message)}"
        yield path, Damaged(whose, f"{what} to fit the schema `{schema}`", seen)


def _arguments(schema: str, body: Any) -> Iterator[tuple[Path, bool, str]]:
    """The arguments of calls that are strings but hold no JSON, which no schema can say."""
    if not isinstance(body, dict):
        return
    listed = body.get("tool_calls") if schema in ("turn", "event.turn-end") else None
    places: list[tuple[Path, Any]] = [
        (("tool_calls", at), it) for at, it in enumerate(listed if isinstance(listed, list) else [])
    ]
    if schema == "event.turn-patch" and body.get("patch_type") == "add_tool_call":
        places.append((("data",), body.get("data")))
    for place, call in places:
        told = call.get("arguments") if isinstance(call, dict) else None
        if isinstance(told, str) and not _is_json(told):
            yield (*place, "arguments"), False, f"{expect.show(told)} is not JSON"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
