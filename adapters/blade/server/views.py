"""The bodies of Blade's turns, tool calls, sessions and resources, as the table spells them."""

from collections.abc import Iterable
from posixpath import normpath
from typing import Any
from zlib import crc32

import orjson

import gateway.model as m
from adapters.blade.asks import ASK_TOOL
from adapters.blade.wire import BlockType
from gateway.json_values import JsonLimitExceeded, JsonObject, JsonValue, read_json
from gateway.ports import DialectTable, IssuedKey, WorkspaceItem
from gateway.resources import SessionArchive, StoredMemory, StoredRun, StoredSkill, StoredTask

from .turn_state import TurnBlock, TurnCall, TurnEntry, with_prefix

# -- turns ------------------------------------------------------------------------------------------------------------

def turn_body(table: DialectTable, turn: TurnEntry) -> JsonValue:
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


def block_fields(table: DialectTable, one: TurnBlock) -> JsonObject:
    content = one.content
    if isinstance(content, TurnCall):
        content = result(table, content) if one.type == BlockType.TOOL_RESULT else _declaration(table, content)
    return {"type": one.type, "content": content, "call": None if one.call is None else _call_names(one.call)}


def _declaration(table: DialectTable, call: TurnCall) -> JsonValue:
    return table.object("declaration", call=_call_names(call), input=arguments(table, call))


def _call_names(call: TurnCall) -> JsonObject:
    return {"id": call.id, "name": call.name, "title": call.title or call.name}


PREVIEW_LENGTH = 100
"""How many characters of a memory a reference to it shows."""


def memory_refs(refs: object) -> list[JsonObject] | None:
    """Blade's memories have numbers; a memory with another id gets a stable number."""
    if not isinstance(refs, list):
        return None
    return [{"id": _number(ref.get("id")), "content_preview": _preview(ref), "skill_name": ref.get("skill_name")}
            for ref in refs if isinstance(ref, dict)]


def _number(memory_id: object) -> int:
    return memory_id if isinstance(memory_id, int) else crc32(str(memory_id).encode())


def _preview(ref: JsonObject) -> str:
    text = str(ref.get("content_preview") or ref.get("content") or ref.get("title") or "")
    return text if len(text) <= PREVIEW_LENGTH else f"{text[:PREVIEW_LENGTH]}…"


# -- tool calls -------------------------------------------------------------------------------------------------------

def call_fields(table: DialectTable, call: TurnCall) -> dict[str, object]:
    return {
        "call": call, "name": call.name, "title": call.title or call.name, "result": result(table, call),
        "reference": call.reference,
        "arguments": orjson.dumps(arguments(table, call)).decode(),
    }


def arguments(table: DialectTable, call: TurnCall) -> object:
    """The input of a call; a call that asks a person names its loop."""
    if call.questions is not None:
        return table.object("arguments.asked", questions=call.questions, source=call.loop or None)
    if call.name == ASK_TOOL:
        return table.object("arguments.given", input=call.input, source=call.loop or None)
    return call.input


def result(table: DialectTable, call: TurnCall) -> Any:
    """The result of a call, with what it hands to the page, if anything."""
    content = call.content
    spelled = content if content is None or isinstance(content, str) else table.object("parts", content=content)
    if not call.meta:
        return spelled
    return table.object("result.meta", result=_as_object(table, spelled), meta=call.meta)


def _as_object(table: DialectTable, value: object) -> JsonValue:
    if isinstance(value, str):
        try:
            found = read_json(value)
        except (JsonLimitExceeded, orjson.JSONDecodeError):
            found = value
        value = found
    return value if isinstance(value, dict) else table.object("result.content", content=value)


# -- sessions ---------------------------------------------------------------------------------------------------------

def user_id_of(owner: str) -> str:
    return f"user_{owner or 'local'}"


def session_body(table: DialectTable, view: m.SessionView, model: str | None = None) -> JsonValue:
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


def full_session_body(table: DialectTable, view: m.SessionView, model: str | None = None) -> JsonValue:
    kept = view.private(table.dialect)
    setup = {key: kept.get(key) for key in ("template_id", "primary_skill_id", "software_factory_id", "workspace_id")}
    return table.object(
        "session.full", session=session_body(table, view, model), solution=None, primary_skill=None, setup=setup,
    )


# -- memories ---------------------------------------------------------------------------------------------------------

def memory_body(table: DialectTable, kept: StoredMemory) -> JsonObject:
    memory = kept.memory
    return table.object(
        "memory", id=kept.number, type=memory.type, content=memory.content, skill=memory.skill, record=memory.record,
        scope=memory.scope, owner=memory.owner, topic=memory.topic, external_id=memory.external_id,
        superseded_by=memory.superseded_by, reason=memory.reason, created_at=kept.created_at,
        updated_at=kept.updated_at, hits=memory.hits, last_hit_at=memory.last_hit_at,
        disabled=memory.disabled, session_id=memory.session_id,
    )


def memories_body(table: DialectTable, page: Iterable[StoredMemory], total: int) -> JsonObject:
    return table.object("memories", items=[memory_body(table, kept) for kept in page], total=total)


# -- keys -------------------------------------------------------------------------------------------------------------

def key_body(table: DialectTable, found: IssuedKey) -> JsonObject:
    return table.object("key", **_key(found))


def created_key_body(table: DialectTable, made: IssuedKey, token: str) -> JsonObject:
    """Both shapes in one: the key's own fields, and the key without its plaintext below `key`."""
    return table.object("key.created", **_key(made) | {"plaintext": token}, key=key_body(table, made))


def _key(found: IssuedKey) -> dict[str, object]:
    return {
        "id": found.key_id, "name": found.label or found.name, "masked": found.masked, "plaintext": None,
        "created_at": found.created.timestamp(), "last_used_at": found.used and found.used.timestamp(),
        "last_used_from": found.used_from or None,
    }


# -- files ------------------------------------------------------------------------------------------------------------

def item_body(table: DialectTable, found: WorkspaceItem, folder: str) -> JsonObject:
    return table.object(
        "folder" if found.is_folder else "file", name=found.name, size=found.size,
        path=normpath(f"{folder}/{found.name}").lstrip("/"), changed_at=found.changed_at,
    )


# -- skills -----------------------------------------------------------------------------------------------------------

def skill_body(table: DialectTable, skill: StoredSkill) -> JsonObject:
    return table.object("skill", **_skill_fields(skill))


def full_skill_body(table: DialectTable, skill: StoredSkill) -> JsonObject:
    """A skill with its text and the paths of its files."""
    return table.object(
        "skill.full", **_skill_fields(skill), text=skill.body.text, paths=[m.SKILL_FILE, *skill.body.sizes])


def session_skill_body(table: DialectTable, ref: m.SkillRef) -> JsonObject:
    return table.object("skill.session", name=ref.name, description=ref.description, version=ref.version)


def _skill_fields(skill: StoredSkill) -> dict[str, object]:
    return {
        "name": skill.name, "description": skill.body.description, "version": skill.version,
        "is_offered": skill.folder is not None, "enabled": skill.body.enabled, "created_at": skill.created_at,
        "updated_at": skill.updated_at,
    }


# -- checkpoints ------------------------------------------------------------------------------------------------------

def checkpoint_body(
    table: DialectTable, checkpoint_id: str, mark: m.Checkpoint, message_id: str | None, preview: str, leaf_id: str,
) -> JsonObject:
    return table.object(
        "checkpoint", checkpoint_id=checkpoint_id, leaf_id=leaf_id,
        turn_id=with_prefix("turn", message_id) if message_id else None, sequence=mark.entries, created_at=mark.at,
        preview=preview,
    )


# -- exports ----------------------------------------------------------------------------------------------------------

def import_preview_body(table: DialectTable, found: SessionArchive) -> JsonObject:
    manifest = found.manifest
    return table.object(
        "import.preview", session_id=manifest.session_id, intent=manifest.title or "", agent=manifest.agent,
        exported_at=manifest.exported_at, records=manifest.records, files=found.files,
        messages=sum(_is_message(record.event) for record in found.records),
    )


def _is_message(event: m.AnyEvent) -> bool:
    return isinstance(event, m.MessageStarted) or (
        isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage)
    )


# -- scheduled tasks --------------------------------------------------------------------------------------------------

def task_body(table: DialectTable, kept: StoredTask) -> JsonObject:
    task = kept.task
    return table.object(
        "task", id=kept.task_id, title=task.title, prompt=task.prompt, cron=task.cron, timezone=task.timezone,
        enabled=task.enabled, expires_at=task.expires_at, unattended=task.unattended, model=task.model,
    )


def task_run_body(table: DialectTable, kept: StoredRun) -> JsonObject:
    run = kept.run
    return table.object(
        "task.run", id=kept.run_id, task_id=run.task_id, session_id=run.session_id, status=run.status,
        error=run.error, triggered_at=run.triggered_at, finished_at=run.finished_at,
    )


def due_body(table: DialectTable, kept: StoredTask, times: Iterable[float]) -> JsonObject:
    return table.object(
        "task.due", task_id=kept.task_id, title=kept.task.title,
        times=[table.object("task.time", at=time) for time in times],
    )
