"""The bodies of Blade's turns, tool calls and sessions, as the table spells them."""

from typing import Any
from zlib import crc32

import orjson

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from adapters.blade.wire import BlockType
from gateway.json_values import JsonLimitExceeded, read_json
from gateway.ports import DialectTable

from .turn_state import TurnBlock, TurnCall, TurnEntry

# -- turns ------------------------------------------------------------------------------------------------------------

def turn_body(table: DialectTable, turn: TurnEntry) -> Any:
    """A turn in its current state."""
    fields = {
        "id": turn.id,
        "sequence": turn.sequence,
        "turn_id": turn.turn_id,
        "loop_id": turn.loop.loop_id,
        "role": turn.role,
        "status": turn_status(table, turn),
        "blocks": [block_fields(table, one) for one in turn.blocks],
        "tool_calls": [call_fields(table, call) for call in turn.calls.values()],
        "model": turn.model,
        "usage": turn.usage or None,
        "duration_ms": turn.duration_ms,
        "started_at": turn.started_at,
        "context_window": turn.context_window,
        "fork": turn.loop.fork,
        "memory_refs": memory_refs(turn.memory_refs),
    }
    summed = turn.compaction
    if summed is None:
        return table.object("turn", **fields)
    saved = 1 - summed.tokens_after / summed.tokens_before if summed.tokens_before else 0.0
    return table.object(
        "turn.compaction", **fields, compaction_id=summed.compaction_id, preview=summed.preview, summary=summed.summary,
        archived=turn.archived, tokens_before=summed.tokens_before, tokens_after=summed.tokens_after,
        saved_ratio=min(1.0, max(0.0, round(saved, 4))), trigger=summed.trigger,
    )


def turn_status(table: DialectTable, turn: TurnEntry) -> str:
    return table.word("outcome" if isinstance(turn.state, m.Outcome) else "session_status@turn", turn.state)


def block_fields(table: DialectTable, one: TurnBlock) -> dict[str, Any]:
    content = one.content
    if isinstance(content, TurnCall):
        content = result(table, content) if one.type == BlockType.TOOL_RESULT else _declaration(table, content)
    return {"type": one.type, "content": content, "call": None if one.call is None else _call_names(one.call)}


def _declaration(table: DialectTable, call: TurnCall) -> Any:
    return table.object("declaration", call=_call_names(call), input=arguments(table, call))


def _call_names(call: TurnCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "title": call.title or call.name}


PREVIEW_LENGTH = 100
"""How many characters of a memory a reference to it shows."""


def memory_refs(refs: Any) -> list[dict[str, Any]] | None:
    """Blade's memories have numbers; a memory with another id gets a stable number."""
    if not isinstance(refs, list):
        return None
    return [{"id": _number(ref.get("id")), "content_preview": _preview(ref), "skill_name": ref.get("skill_name")}
            for ref in refs if isinstance(ref, dict)]


def _number(memory_id: Any) -> int:
    return memory_id if isinstance(memory_id, int) else crc32(str(memory_id).encode())


def _preview(ref: dict[str, Any]) -> str:
    text = str(ref.get("content_preview") or ref.get("content") or ref.get("title") or "")
    return text if len(text) <= PREVIEW_LENGTH else f"{text[:PREVIEW_LENGTH]}…"


# -- tool calls -------------------------------------------------------------------------------------------------------

def call_fields(table: DialectTable, call: TurnCall) -> dict[str, Any]:
    return {
        "call": call, "name": call.name, "title": call.title or call.name, "result": result(table, call),
        "reference": call.reference,
        "arguments": orjson.dumps(arguments(table, call)).decode(),
    }


def arguments(table: DialectTable, call: TurnCall) -> Any:
    """The input of a call; a call that asks a person names its loop."""
    if call.questions is not None:
        return table.object("arguments.asked", questions=call.questions, source=call.loop or None)
    if call.name == ASK_TOOL:
        return table.object("arguments.given", input=call.input, source=call.loop or None)
    return call.input


def result(table: DialectTable, call: TurnCall) -> Any:
    """The result of a call, with what it hands to the page, if anything."""
    said = call.content
    spelled = said if said is None or isinstance(said, str) else table.object("parts", content=said)
    if not call.meta:
        return spelled
    return table.object("result.meta", result=_as_object(table, spelled), meta=call.meta)


def _as_object(table: DialectTable, said: Any) -> Any:
    if isinstance(said, str):
        try:
            found = read_json(said)
        except (JsonLimitExceeded, orjson.JSONDecodeError):
            found = said
        said = found
    return said if isinstance(said, dict) else table.object("result.content", content=said)


# -- sessions ---------------------------------------------------------------------------------------------------------

def user_id_of(owner: str) -> str:
    return f"user_{owner or 'local'}"


def session_body(table: DialectTable, view: m.SessionView, model: str | None = None) -> Any:
    kept = view.private(table.dialect)
    return table.object(
        "session", id=view.session_id, intent=view.title or "", status=session_status(table, view),
        created_at=view.created_at, updated_at=view.updated_at, user_id=user_id_of(view.owner),
        solution_id=kept.get("solution_id"), biz_role_id=kept.get("biz_role_id"), model=view.settings.model or model,
        shared=kept.get("shared", False), is_pinned=kept.get("is_pinned", False),
        memory_enabled=bool(view.settings.memory), is_persistent=kept.get("is_persistent", False),
        replay_state=kept.get("replay_state"),
    )


def session_status(table: DialectTable, view: m.SessionView) -> str:
    if view.status == "idle" and view.ended is not None:
        return table.word("outcome", view.ended.outcome)
    return table.word("session_status", view.status)


def full_session_body(table: DialectTable, view: m.SessionView, model: str | None = None) -> Any:
    kept = view.private(table.dialect)
    setup = {key: kept.get(key) for key in ("template_id", "primary_skill_id", "software_factory_id", "workspace_id")}
    return table.object(
        "session.full", session=session_body(table, view, model), solution=None, primary_skill=None, setup=setup,
    )
