"""What Blade counts: tokens, the context of a session, its plan and its sub-agents."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters.blade.server.routes.statistics import estimate_tokens
from tests.support.dialects.blade.rest_server import Client, blade, say


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as made:
        yield made


async def talked(client: Client, message: str) -> str:
    session = (await client.post("/sessions", {"intent": "x"})).body["session_id"]
    assert (await client.post(f"/sessions/{session}/chat", {"message": message})).status == 200
    return str(session)


def test_letters_are_counted_in_fours_and_other_scripts_one_by_one() -> None:
    assert [estimate_tokens(text) for text in ("", "abcd", "abcde", "你好", "你好abcd")] == [0, 1, 2, 2, 3]


async def test_tokens_of_texts_are_estimated(client: Client) -> None:
    said = (await client.post("/sessions/tokenize/prompt", {"prompt": "你好", "model": "m"})).body
    assert said == {"count": 2, "max_model_len": 200_000, "estimated": True, "model": "m"}
    messages = [{"role": "user", "content": "abcd"}, {"role": "user", "content": [{"type": "text", "text": "abcd"}]}]
    said = (await client.post("/sessions/tokenize/messages", {"messages": messages, "tools": [{"name": "x"}]})).body
    assert said["messages"][0] == {"role": "user", "count": 5}
    assert said["count"] == sum(one["count"] for one in said["messages"]) + said["tools_count"] + 4
    assert (await client.post("/sessions/tokenize/prompt", {})).status == 400


async def test_the_context_of_a_session_grows(client: Client) -> None:
    session = await talked(client, "hello")
    first = (await client.get(f"/sessions/{session}/context-stats")).body
    assert (first["session_id"], first["context_window"], first["turn_count"]) == (session, 200_000, 2)
    assert first["used_tokens"] + first["free_tokens"] == first["context_window"]
    await client.post(f"/sessions/{session}/chat", {"message": "hello again, and much longer this time"})
    later = (await client.get(f"/sessions/{session}/context-stats")).body
    assert later["used_tokens"] > first["used_tokens"] > 0
    assert (await client.get("/sessions/nobody/context-stats")).status == 404


async def test_the_tasks_of_a_session_are_the_steps_of_its_plan(client: Client) -> None:
    assert (await client.get(f"/sessions/{await talked(client, 'hello')}/tasks")).body == []
    steps = (await client.get(f"/sessions/{await talked(client, '/plan')}/tasks")).body
    assert [(step["title"], step["status"]) for step in steps] == [
        ("Listen", "completed"), ("Interpret", "in_progress"), ("Answer", "pending")]


async def test_sub_agents_are_background_tasks(client: Client) -> None:
    session = await client.session()
    assert (await client.get(f"/sessions/{session}/background-tasks")).body == []
    await say(client, session, "/fork hello")
    [task] = (await client.get(f"/sessions/{session}/background-tasks")).body
    assert task["status"] == "completed"
    turns = (await client.get(f"/sessions/{session}/messages")).body
    assert task["task_id"] in [turn["loop_id"] for turn in turns]
    shown = (await client.get(f"/sessions/{session}/background-tasks/{task['task_id']}?tail=1")).body
    [written] = [turn for turn in turns if turn["loop_id"] == task["task_id"] and turn["role"] == "assistant"]
    assert shown["output"] == written["blocks"][-1]["content"].splitlines()[-1]
    assert (await client.get(f"/sessions/{session}/background-tasks/nothing")).status == 404
    assert (await client.post(f"/sessions/{session}/background-tasks/{task['task_id']}/stop")).status == 501
