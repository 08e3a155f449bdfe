"""Conversations as the documents of the protocols show them, served by nothing of ours, and imported.

The bodies of Blade and ZenFlux are the examples of their documents, with values where an example lists the choices.
The documents of CAS and AAP have no examples of lists and histories: those bodies have the fields that they name.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web

import gateway.model as m
from gateway.errors import GatewayError
from gateway.migration import (
    Destination,
    Importer,
    ImportLine,
    ImportOutcome,
    ImportSummary,
    NoStore,
    Origin,
    StoredSession,
)
from gateway.ports import RemoteAddress, ResourceGroup, Timeouts
from tests.support.dialect_tables import dialect

BLADE_SESSION = {
    "id": "sess_xxx", "intent": "用户任务描述", "status": "completed", "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z", "user_id": "user_xxx", "solution_id": None, "biz_role_id": None,
    "model": None, "shared": False, "is_pinned": False, "memory_enabled": True, "is_persistent": False,
    "replay_state": None,
}
BLADE_TURN: dict[str, Any] = {
    "id": "entry_xxx", "sequence": 0, "turn_id": "turn_xxx", "loop_id": "root", "kind": "message", "role": "assistant",
    "status": "completed", "blocks": [], "tool_calls": [], "model": "claude-sonnet-4-20250514",
    "usage": {"input_tokens": 500, "output_tokens": 200}, "duration_ms": 3500, "started_at": "2026-01-01T00:00:00Z",
    "context_window": 200000, "memory_refs": None, "parent_fork_tool_call_id": None,
}
BLADE_BLOCK = {"type": "text", "content": "这是回复文本", "tool_call_id": None, "tool_name": None, "display_name": None}
BLADE_CALL = {
    "id": "tc_xxx", "tool_name": "Bash", "display_name": "执行命令", "arguments": '{"command": "ls -la"}',
    "status": "done", "result": "total 48\ndrwxr-xr-x ...", "duration_ms": 150, "pending_question_ref": None,
}
ZENFLUX_CONVERSATION = {
    "id": "uuid", "title": "对话标题", "user_id": "local", "created_at": "2025-01-01T00:00:00Z",
    "updated_at": "2025-01-01T00:00:00Z",
}
ZENFLUX_MESSAGE: dict[str, Any] = {
    "id": "uuid", "conversation_id": "uuid", "role": "user", "content": "列出文件", "status": "completed",
    "created_at": "2025-01-01T00:00:00Z", "metadata": {},
}
ZENFLUX_BLOCKS = [
    {"type": "thinking", "thinking": "Let me analyze..."},
    {"type": "tool_use", "id": "toolu_abc123", "name": "web_search", "input": {"query": "weather"}},
    {"type": "tool_result", "tool_use_id": "toolu_abc123", "content": "搜索结果：...", "is_error": False},
    {"type": "text", "text": "让我来帮你分析这个问题..."},
]
CAS_EVENT = {
    "schema_version": "1.0", "session_id": "sess_xxx", "turn_id": "turn_xxx", "created_at": "2026-01-01T00:00:00Z",
    "processed_at": "2026-01-01T00:00:00Z",
}
CAS_SESSION = {
    "id": "sess_xxx", "type": "session", "agent": {"id": "agent_xxx", "type": "agent", "name": "helper", "version": 1},
    "agent_id": "agent_xxx", "environment_id": "env_xxx", "status": "idle", "turn_status": "idle", "title": "标题",
    "metadata": {}, "resources": [], "vault_ids": [], "memory_store_ids": [], "environment_variables": {},
    "stats": {"active_seconds": 0, "duration_seconds": 0}, "archived_at": None, "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}
AAP_SESSION = {"sessionId": "sess_xxx", "agent": {"name": "helper"}}
AAP_HISTORY = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "列出文件"},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Let me analyze..."},
        {"type": "tool_use", "toolCallId": "tc_xxx", "name": "Bash", "input": {"command": "ls -la"}}]},
    {"role": "tool", "toolCallId": "tc_xxx", "content": "total 48"},
    {"role": "assistant", "content": "这是回复文本"},
]


def zenflux(content: Any) -> dict[str, Any]:
    """The answers of a server whose assistant has this content."""
    answer = {**ZENFLUX_MESSAGE, "id": "uuid-2", "role": "assistant", "content": content}
    return {
        "/conversations": {"code": 200, "message": "success", "data": {"conversations": [ZENFLUX_CONVERSATION]}},
        "/conversations/uuid": {"code": 200, "message": "success", "data": ZENFLUX_CONVERSATION},
        "/conversations/uuid/messages": {
            "code": 200, "message": "success", "data": {"messages": [ZENFLUX_MESSAGE, answer]}},
    }


USER_TURN = {**BLADE_TURN, "id": "entry_0", "role": "user", "blocks": [{**BLADE_BLOCK, "content": "列出文件"}]}
CALL_BLOCK = {**BLADE_BLOCK, "type": "tool_use", "content": {}, "tool_call_id": "tc_xxx", "tool_name": "Bash"}
ANSWER_TURN = {**BLADE_TURN, "sequence": 1, "blocks": [CALL_BLOCK, BLADE_BLOCK], "tool_calls": [BLADE_CALL]}
CASES: Mapping[str, tuple[str, Mapping[str, Any], str, list[str], list[str]]] = {
    "blade": ("blade", {
        "/sessions": {"items": [BLADE_SESSION], "total": 1, "limit": 20, "offset": 0},
        "/sessions/sess_xxx": BLADE_SESSION, "/sessions/sess_xxx/messages": [USER_TURN, ANSWER_TURN],
    }, "用户任务描述", ["列出文件", "这是回复文本"], ["Bash"]),
    "zenflux, blocks as a list": (
        "zenflux", zenflux(ZENFLUX_BLOCKS), "对话标题", ["列出文件", "让我来帮你分析这个问题..."], ["web_search"]),
    "zenflux, blocks as JSON in a text": (
        "zenflux", zenflux(orjson.dumps(ZENFLUX_BLOCKS).decode()), "对话标题",
        ["列出文件", "让我来帮你分析这个问题..."], ["web_search"]),
    "zenflux, a text": ("zenflux", zenflux("文本"), "对话标题", ["列出文件", "文本"], []),
    "cas": ("cas", {
        "/sessions": {"data": [CAS_SESSION], "has_more": False}, "/sessions/sess_xxx": CAS_SESSION,
        "/sessions/sess_xxx/events": {"has_more": False, "data": [
            {**CAS_EVENT, "id": "evt_1", "type": "user.message", "content": "列出文件"},
            {**CAS_EVENT, "id": "evt_2", "type": "agent.message", "content": [
                {"type": "text", "text": "这是回复文本"}]},
            {**CAS_EVENT, "id": "evt_3", "type": "session.status_idle", "stop_reason": {"type": "end_turn"}},
        ]},
    }, "标题", ["列出文件", "这是回复文本"], []),
    "aap": ("aap", {
        "/sessions": {"sessions": [AAP_SESSION]}, "/sessions/sess_xxx": AAP_SESSION,
        "/sessions/sess_xxx/history": {"history": {"full": AAP_HISTORY}},
        "/meta": {"version": 3, "agents": [
            {"name": "helper", "version": "1.0.0", "capabilities": {"history": {"full": {}}}}]},
    }, "", ["列出文件", "这是回复文本"], ["Bash"]),
}


BLADE_MEMORY = {
    "id": 1, "type": "feedback", "content": "记忆内容", "skill_name": None, "record_type": None, "scope": None,
    "owner": None, "topic": None, "mem0_id": None, "superseded_by": None, "write_reason": None,
    "created_at": "2026-01-01T00:00:00Z", "updated_at": None, "hit_count": 0, "last_hit_at": None, "disabled": False,
    "source_session": "sess_xxx",
}
BLADE_TASK = {
    "id": "task_xxx", "title": "每日报告", "prompt": "生成今日数据摘要", "cron": "0 9 * * *",
    "timezone": "Asia/Shanghai", "enabled": True, "expires_at": None, "skip_confirmations": False, "model": None,
}


class Kept(NoStore):
    """Keeps the records of what is stored."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[m.Record]] = {}

    async def find(self, session_id: str) -> StoredSession | None:
        return StoredSession("", 0, None) if session_id in self.sessions else None

    async def store(self, sessions: Any) -> list[GatewayError | None]:
        self.sessions |= {records[0].session_id: records for records in sessions}
        return [None] * len(sessions)


@asynccontextmanager
async def documented(bodies: Mapping[str, Any]) -> AsyncIterator[str]:
    """The address of a server that answers with these bodies by path, and knows nothing else."""
    async def answer(request: web.Request) -> web.Response:
        found = bodies.get(request.path)
        return web.json_response({"message": "?"}, status=404) if found is None else web.json_response(found)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


async def take(name: str, bodies: Mapping[str, Any], lines: list[ImportLine]) -> tuple[ImportSummary, Kept]:
    spoken, store = dialect(name), Kept()
    assert spoken.past_sessions is not None

    async def report(line: ImportLine) -> None:
        lines.append(line)

    mount = "/api" if name == "blade" else ""
    async with documented({mount + path: body for path, body in bodies.items()}) as url:
        source = spoken.past_sessions(RemoteAddress(url=url, patience=Timeouts(attempts=1)), "")
        importer = Importer(source, store, Origin(dialect=name, url=url), Destination(agent="demo"), lambda: 2e9,
                            report=report)
        await importer.run()
        await source.close()
    return importer.summary, store


@pytest.mark.parametrize("case", CASES)
async def test_what_the_documents_show_is_imported(case: str) -> None:
    name, bodies, title, texts, calls = CASES[case]
    lines: list[ImportLine] = []
    done, store = await take(name, bodies, lines)
    assert done.counts[ImportOutcome.IMPORTED] == 1, [line.reason for line in lines]
    [(session_id, records)] = store.sessions.items()
    view = m.fold(session_id, records)
    assert session_id == ("uuid" if name == "zenflux" else "sess_xxx")
    assert (view.title or "") == title
    spoken = [entry for entry in view.entries if entry.role in (m.Role.USER, m.Role.ASSISTANT)]
    said = [text for entry in spoken if (text := m.text_of(m.parts_of(entry.content)))]
    assert said == texts
    assert [part.call.name for entry in spoken for part in m.parts_of(entry.content)
            if isinstance(part, m.ToolUsePart)] == calls


async def test_memories_and_schedules_that_the_documents_show() -> None:
    bodies = {"/api/memories": {"items": [BLADE_MEMORY], "total": 1}, "/api/scheduled-tasks": [BLADE_TASK]}
    make = dialect("blade").past_resources
    assert make is not None
    async with documented(bodies) as url:
        source = make(RemoteAddress(url=url, patience=Timeouts(attempts=1)), "")
        [memory] = [one async for one in source.read(ResourceGroup.MEMORIES)]
        [task] = [one async for one in source.read(ResourceGroup.SCHEDULES)]
        await source.close()
    assert (memory.kind, memory.resource_id) == ("note", "1")
    assert memory.body == {"type": "feedback", "content": "记忆内容", "session_id": "sess_xxx", "disabled": False}
    assert (task.kind, task.resource_id, task.body["enabled"]) == ("task", "task_xxx", False)
    assert (task.body["cron"], task.body["prompt"]) == ("0 9 * * *", "生成今日数据摘要")
