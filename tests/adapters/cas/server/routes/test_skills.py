"""CAS's skills: made of uploaded files, with versions, and used by agents and sessions."""

import zipfile
from collections.abc import AsyncIterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest
import qca

from gateway.resources import AgentService, SkillService
from tests.support.gateway_server import Served, reachable_from_outside, serving
from tests.support.skill_zips import FILES, skill_text, zipped

MOUNT = "/api/v1/cloud"
OFFERED = "house-style"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    (tmp_path / "offered" / OFFERED).mkdir(parents=True)
    (tmp_path / "offered" / OFFERED / "SKILL.md").write_text(skill_text(OFFERED))
    async with serving(
        tmp_path, log="memory", dialects={"cas": {}}, management={"skills": str(tmp_path / "offered")},
    ) as made:
        yield made


async def call(served: Served, method: str, path: str, body: Any = None, *, status: int = 200, **how: Any) -> Any:
    async with served.http.request(method, served.url(f"{MOUNT}{path}"), json=body, **how) as answer:
        said = await answer.json()
        assert answer.status == status, said
        return said


def form(files: Mapping[str, bytes], below: str = "csv-tidy/", **fields: str) -> aiohttp.FormData:
    made = aiohttp.FormData(quote_fields=False, default_to_multipart=True)
    for path, content in files.items():
        made.add_field("files", content, filename=f"{below}{path}")
    for name, value in fields.items():
        made.add_field(name, value)
    return made


async def make(served: Served, files: Mapping[str, bytes] = FILES, path: str = "/skills", **fields: str) -> Any:
    return await call(served, "POST", path, status=201, data=form(files, **fields))


async def test_a_skill_is_made_read_listed_and_deleted(served: Served) -> None:
    made = await make(served, display_title="Tidy tables", metadata='{"team":"data"}')
    assert (made["id"], made["type"], made["latest_version"]) == ("csv-tidy", "skill", "1")
    assert (made["display_title"], made["display_name"], made["metadata"]) == ("Tidy tables",) * 2 + ({"team": "data"},)
    assert await call(served, "GET", "/skills/csv-tidy") == made
    listed = await call(served, "GET", "/skills")
    assert [(one["id"], one["source"]["type"]) for one in listed["data"]] == [
        ("csv-tidy", "custom"), (OFFERED, "qoder")]
    assert [one["id"] for one in (await call(served, "GET", "/skills?source=qoder"))["data"]] == [OFFERED]
    page = await call(served, "GET", "/skills?limit=1")
    rest = await call(served, "GET", f"/skills?limit=1&page={page['next_page']}")
    assert [one["id"] for one in page["data"] + rest["data"]] == ["csv-tidy", OFFERED]
    await call(served, "POST", "/skills", status=409, data=form(FILES))
    assert await call(served, "DELETE", "/skills/csv-tidy") == {"id": "csv-tidy", "type": "skill_deleted"}
    await call(served, "GET", "/skills/csv-tidy", status=404)
    await call(served, "DELETE", f"/skills/{OFFERED}", status=403)


async def test_versions_keep_their_files(served: Served) -> None:
    await make(served)
    newer = {"SKILL.md": skill_text(description="Cleans better.").encode(), "scripts/new.py": b"new"}
    made = await make(served, newer, "/skills/csv-tidy/versions")
    assert (made["version"], made["skill_id"], made["description"]) == ("2", "csv-tidy", "Cleans better.")
    listed = (await call(served, "GET", "/skills/csv-tidy/versions"))["data"]
    assert [one["version"] for one in listed] == ["2", "1"]
    assert (await call(served, "GET", "/skills/csv-tidy"))["latest_version_id"] == listed[0]["id"]
    for named in ("1", listed[1]["id"]):
        shown = await call(served, "GET", f"/skills/csv-tidy/versions/{named}")
        assert shown["description"] == "Cleans tables."
        async with served.http.get(
            served.url(f"{MOUNT}/skills/csv-tidy/versions/{named}/content")) as answer:
            archive = zipfile.ZipFile(BytesIO(await answer.read()))
        assert {path: archive.read(path) for path in archive.namelist()} == {
            f"csv-tidy/{path}": content for path, content in FILES.items()}
    await call(served, "GET", "/skills/csv-tidy/versions/3", status=404)
    await call(served, "GET", "/skills/csv-tidy/versions/nothing", status=404)


@pytest.mark.parametrize("files, reason", [
    ({}, "no file"), ({"notes.md": b"x"}, "no SKILL.md"), ({"SKILL.md": b"no front matter"}, "front matter"),
    ({"SKILL.md": FILES["SKILL.md"], "../out.py": b"x"}, "not a path inside"),
])
async def test_files_that_are_no_skill_are_refused(served: Served, files: Mapping[str, bytes], reason: str) -> None:
    said = await call(served, "POST", "/skills", status=400, data=form(files, note="a form has a part"))
    assert reason in said["error"]["message"]
    assert [one["id"] for one in (await call(served, "GET", "/skills"))["data"]] == [OFFERED]


async def test_a_repeated_upload_is_carried_out_once(served: Served) -> None:
    key = {"Idempotency-Key": "once"}
    many = {**FILES, **{f"resources/{number}.txt": b"x" for number in range(40)}}
    made = [await call(served, "POST", "/skills", status=201, data=form(many), headers=key) for _ in range(2)]
    assert made[0] == made[1]
    await call(served, "POST", "/skills", status=409, data=form(FILES), headers=key)


# -- used -------------------------------------------------------------------------------------------------------------

async def begin(served: Served, agent: Any) -> Any:
    return await call(served, "POST", "/sessions", {
        "agent": agent, "environment": {"config": {"type": "cloud"}}}, status=201)


async def read_skill(served: Served, session_id: str, name: str) -> str | None:
    """The text of a skill that a session has, as its agent reads it."""
    gateway, view = served.gateway, served.gateway.table.get(session_id).view
    [ref] = [one for one in view.settings.skills or () if one.name == name]
    cards = gateway.components.cards
    service = SkillService(
        gateway.resources, gateway.components.config.management.skills,
        AgentService(gateway.resources, lambda: cards, 0.0))
    return (await service.read_file(view.owner, ref, "SKILL.md")).text


async def test_an_agent_has_the_version_that_it_names(served: Served) -> None:
    await make(served)
    await make(served, {"SKILL.md": skill_text(description="Newer.").encode()}, "/skills/csv-tidy/versions")
    pinned = {"type": "custom", "skill_id": "csv-tidy", "version": "1"}
    agent = await call(served, "POST", "/agents", {"name": "A", "model": "demo-1", "skills": [pinned]}, status=201)
    session = await begin(served, agent["id"])
    assert session["agent"]["skills"] == [pinned]
    assert await read_skill(served, session["id"], "csv-tidy") == FILES["SKILL.md"].decode()
    newer = {**pinned, "version": "2"}
    await call(served, "POST", f"/agents/{agent['id']}", {"version": 1, "skills": [newer]})
    later = await begin(served, agent["id"])
    assert "Newer." in str(await read_skill(served, later["id"], "csv-tidy"))
    wrong = {**pinned, "version": "9"}
    await call(served, "POST", f"/agents/{agent['id']}", {"version": 2, "skills": [wrong]}, status=400)
    assert (await call(served, "GET", f"/agents/{agent['id']}"))["version"] == 2


async def test_a_session_may_name_its_own_skills(served: Served) -> None:
    await make(served)
    named = [{"type": "custom", "skill_id": "csv-tidy"}, {"type": "qoder", "skill_id": OFFERED}]
    session = await begin(served, {"id": "agent_demo", "skills": named})
    assert [(one["skill_id"], one["version"]) for one in session["agent"]["skills"]] == [
        ("csv-tidy", "1"), (OFFERED, "1")]
    assert await read_skill(served, session["id"], "csv-tidy") == FILES["SKILL.md"].decode()
    assert await read_skill(served, session["id"], OFFERED) == skill_text(OFFERED)


async def test_a_session_may_do_without_the_skills_of_its_agent(served: Served) -> None:
    await make(served)
    agent = await call(served, "POST", "/agents", {
        "name": "A", "model": "demo-1", "skills": [{"type": "custom", "skill_id": "csv-tidy"}]}, status=201)
    session = await begin(served, {"id": agent["id"], "skills": []})
    assert session["agent"]["skills"] == []
    assert served.gateway.table.get(session["id"]).view.settings.skills == ()


async def test_published_clients_make_and_read_skills(served: Served) -> None:
    async with reachable_from_outside(served) as address:
        async with qca.AsyncManaged(
            pat="x", base_url=f"{address}{MOUNT}", _strict_response_validation=True,
        ) as client:
            made = await client.skills.create(files=[
                (f"csv-tidy/{path}", content) for path, content in FILES.items()], display_title="Tidy")
            assert (made.id, made.display_title, made.latest_version) == ("csv-tidy", "Tidy", "1")
            version = await client.skills.versions.create("csv-tidy", files=[("skill.zip", zipped())])
            assert [one.version async for one in client.skills.versions.list("csv-tidy")] == [version.version, "1"]
        async with anthropic.AsyncAnthropic(api_key="x", base_url=f"{address}{MOUNT}") as other:
            [first, offered] = [one async for one in other.beta.skills.list()]
            assert (first.display_name, first.source.type, offered.id) == ("Tidy", "custom", OFFERED)
            shown = await other.beta.skills.versions.retrieve(first.latest_version_id, skill_id=first.id)
            assert (shown.name, shown.description) == ("csv-tidy", "Cleans tables.")
            assert (await other.beta.skills.delete(first.id)).type == "skill_deleted"
