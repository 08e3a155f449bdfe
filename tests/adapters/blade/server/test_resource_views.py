"""Bodies beside chat have the fields of the seed, all of them always."""

from datetime import UTC, datetime

import gateway.model as m
from adapters.blade.server import views
from gateway.ports import Resource, WorkspaceItem
from gateway.ports.keys import Key
from gateway.resources import Memory, ScheduledTask, StoredMemory, StoredRun, StoredTask
from gateway.resources.schedules import TaskRun
from tests.support.dialect_tables import table

BLADE = table("blade")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RESOURCE = Resource(
    kind="note", resource_id="note_1", owner="ada", ordinal=1, version=1, created_at=0.0, updated_at=0.0, body={},
)


def test_a_memory() -> None:
    kept = StoredMemory(1, Memory(content="记忆内容", session_id="sess_xxx"), NOW.timestamp(), None, RESOURCE)
    assert list(views.memory_body(BLADE, kept)) == [
        "id", "type", "content", "skill_name", "record_type", "scope", "owner", "topic", "mem0_id", "superseded_by",
        "write_reason", "created_at", "updated_at", "hit_count", "last_hit_at", "disabled", "source_session",
    ]


def test_a_key() -> None:
    key = Key(name="k", user="ada", hash="ab" * 32, created=NOW, label="My Key", masked="sk-blade-v2-...xxxx")
    shown = views.key_body(BLADE, key)
    assert shown == {
        "id": f"key_{'ab' * 12}", "name": "My Key", "masked": "sk-blade-v2-...xxxx", "plaintext": None,
        "created_at": "2026-01-01T00:00:00.000Z", "last_used_at": None, "last_used_from": None,
    }
    assert views.created_key_body(BLADE, key, "sk") == {**shown, "plaintext": "sk", "key": shown}


def test_a_task_and_its_run() -> None:
    task = ScheduledTask(title="每日报告", prompt="p", cron="0 9 * * *", timezone="Asia/Shanghai", agent="a")
    kept = StoredTask("task_x", "ada", 1, task)
    assert views.task_body(BLADE, kept) == {
        "id": "task_x", "title": "每日报告", "prompt": "p", "cron": "0 9 * * *", "timezone": "Asia/Shanghai",
        "enabled": True, "expires_at": None, "skip_confirmations": False, "model": None,
    }
    run = StoredRun("run_x", "ada", TaskRun(task_id="task_x", triggered_at=NOW.timestamp(), session_id="sess_x"))
    assert views.task_run_body(BLADE, run) == {
        "id": "run_x", "task_id": "task_x", "session_id": "sess_x", "status": "running", "error": None,
        "triggered_at": "2026-01-01T00:00:00.000Z", "finished_at": None,
    }
    assert views.due_body(BLADE, kept, [NOW.timestamp()])["occurrences"] == ["2026-01-01T00:00:00.000Z"]


def test_files_and_folders() -> None:
    assert views.item_body(BLADE, WorkspaceItem("a", 3, 5.0), "x") == {
        "name": "a", "type": "file", "size": 3, "is_dir": False, "path": "x/a", "created_at": 5.0, "tags": []}
    assert views.item_body(BLADE, WorkspaceItem("b", None), ".") == {
        "name": "b", "type": "directory", "is_dir": True, "path": "b", "created_at": 0.0, "tags": []}


def test_a_checkpoint_is_named_after_the_turn_that_ended_there() -> None:
    mark = m.Checkpoint(seq=7, at=NOW.timestamp(), entries=2)
    shown = views.checkpoint_body(BLADE, "cp_7", mark, "msg_1f", "hi", "cp_9")
    assert (shown["checkpoint_id"], shown["turn_id"], shown["preview"]) == ("cp_7", "turn_1f", "hi")
    assert shown["leaf_id"] == "cp_9"
    assert views.checkpoint_body(BLADE, "cp_1", mark, None, "", "cp_9")["turn_id"] is None
