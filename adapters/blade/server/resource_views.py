"""The bodies of Blade's resources, as the table spells them."""

from collections.abc import Iterable
from posixpath import normpath

import gateway.model as m
from gateway.json_values import JsonObject
from gateway.ports import DialectTable, IssuedKey
from gateway.resources import SessionArchive, StoredMemory, StoredRun, StoredSkill, StoredTask, WorkspaceItem

from .turn_state import with_prefix

# -- memories ---------------------------------------------------------------------------------------------------------

def memory_body(table: DialectTable, kept: StoredMemory) -> JsonObject:
    said = kept.memory
    return table.object(
        "memory", id=kept.number, type=said.type, content=said.content, skill=said.skill, record=said.record,
        scope=said.scope, owner=said.owner, topic=said.topic, external_id=said.external_id,
        superseded_by=said.superseded_by, reason=said.reason, created_at=kept.created_at, updated_at=kept.updated_at,
        hits=said.hits, last_hit_at=said.last_hit_at, disabled=said.disabled, session_id=said.session_id,
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
    told = found.manifest
    return table.object(
        "import.preview", session_id=told.session_id, intent=told.title or "", agent=told.agent,
        exported_at=told.exported_at, records=told.records, files=found.files,
        messages=sum(_is_message(record.event) for record in found.records),
    )


def _is_message(event: m.AnyEvent) -> bool:
    return isinstance(event, m.MessageStarted) or (
        isinstance(event, m.InputAccepted) and isinstance(event.command, m.SendMessage)
    )


# -- scheduled tasks --------------------------------------------------------------------------------------------------

def task_body(table: DialectTable, kept: StoredTask) -> JsonObject:
    said = kept.task
    return table.object(
        "task", id=kept.task_id, title=said.title, prompt=said.prompt, cron=said.cron, timezone=said.timezone,
        enabled=said.enabled, expires_at=said.expires_at, unattended=said.unattended, model=said.model,
    )


def task_run_body(table: DialectTable, kept: StoredRun) -> JsonObject:
    said = kept.run
    return table.object(
        "task.run", id=kept.run_id, task_id=said.task_id, session_id=said.session_id, status=said.status,
        error=said.error, triggered_at=said.triggered_at, finished_at=said.finished_at,
    )


def due_body(table: DialectTable, kept: StoredTask, times: Iterable[float]) -> JsonObject:
    return table.object(
        "task.due", task_id=kept.task_id, title=kept.task.title,
        times=[table.object("task.time", at=time) for time in times],
    )
