"""Blade's skills: the user's library, and the skills of a session."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects.blade.rest_server import Client, blade
from tests.support.skill_zips import skill_text

UPLOAD = {"name": "my-skill", "files": [
    {"path": "SKILL.md", "content": "# My Skill\nDo <b>this</b>.\n"},
    {"path": "tools/my_tool.py", "content": "print()"},
]}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with blade(tmp_path) as made:
        yield made


async def begin(client: Client, **fields: Any) -> str:
    return str((await client.post("/sessions", {"intent": "x", **fields})).body["session_id"])


async def test_an_uploaded_skill_is_in_the_library_and_in_its_session(client: Client) -> None:
    session = await begin(client)
    made = await client.post(f"/sessions/{session}/skills:upload", UPLOAD)
    assert made.status == 200
    assert made.body == {"name": "my-skill", "skill_dir": "skills/my-skill", "file_count": 2, "overwritten": False}
    [listed] = (await client.get("/skills")).body
    assert (listed["id"], listed["description"], listed["builtin"]) == ("my-skill", "My Skill", False)
    whole = (await client.get("/skills/my-skill")).body
    assert whole["content"].endswith("# My Skill\nDo <b>this</b>.\n")
    assert whole["files"] == ["SKILL.md", "tools/my_tool.py"]
    [used] = (await client.get(f"/sessions/{session}/skills")).body
    assert (used["name"], used["version"]) == ("my-skill", 1)
    again = await client.post(f"/sessions/{session}/skills:upload", {
        "name": "my-skill", "files": [{"path": "SKILL.md", "content": skill_text("my-skill", "Better.")}]})
    assert again.body["overwritten"] is True
    [used] = (await client.get(f"/sessions/{session}/skills")).body
    assert (used["description"], used["version"]) == ("Better.", 2)


@pytest.mark.parametrize("wrong", [
    {}, {"name": "x", "files": []}, {"name": "9", "files": UPLOAD["files"]}, {"name": "x", "files": [{"path": "a"}]},
    {"name": "x", "files": [{"path": "../SKILL.md", "content": "x"}]},
    {"name": "x", "files": [UPLOAD["files"][0], UPLOAD["files"][0]]},
])
async def test_what_is_no_skill_is_refused(client: Client, wrong: dict[str, Any]) -> None:
    session = await begin(client)
    assert (await client.post(f"/sessions/{session}/skills:upload", wrong)).status == 400
    assert (await client.get("/skills")).body == []


async def test_skills_are_found_by_words(client: Client) -> None:
    session = await begin(client)
    await client.post(f"/sessions/{session}/skills:upload", UPLOAD)
    assert [one["name"] for one in (await client.get("/skills/search?q=my+skill")).body["results"]] == ["my-skill"]
    assert (await client.get("/skills/search?q=other")).body == {"results": []}
    assert (await client.get("/skills/search")).status == 400
    assert (await client.get("/skills/nothing")).status == 404
    assert (await client.get("/skills/installed")).body == []


async def test_a_session_takes_a_skill_of_the_library_and_its_newest_version(client: Client) -> None:
    first, second = await begin(client), await begin(client)
    await client.post(f"/sessions/{first}/skills:upload", UPLOAD)
    assert (await client.get(f"/sessions/{second}/skills")).body == []
    assert (await client.post(f"/sessions/{second}/skills/install", {"skill_id": "my-skill"})).status == 200
    assert (await client.post(f"/sessions/{second}/skills/install", {"skill_id": "nothing"})).status == 404
    await client.post(f"/sessions/{first}/skills:upload", {
        "name": "my-skill", "files": [{"path": "SKILL.md", "content": "# Newer\n"}]})
    assert [one["version"] for one in (await client.get(f"/sessions/{second}/skills")).body] == [1]
    synced = (await client.post(f"/sessions/{second}/skills:resync")).body
    assert synced["detail"] == "1 of 1 skills have a newer version"
    assert [one["description"] for one in (await client.get(f"/sessions/{second}/skills")).body] == ["Newer"]


async def test_the_primary_skill_of_a_session_is_one_of_its_skills(client: Client) -> None:
    await client.post(f"/sessions/{await begin(client)}/skills:upload", UPLOAD)
    session = await begin(client, primary_skill_id="my-skill")
    assert [one["name"] for one in (await client.get(f"/sessions/{session}/skills")).body] == ["my-skill"]
    assert (await client.get(f"/sessions/{await begin(client, primary_skill_id='nothing')}/skills")).body == []
