"""Skills: the library and the copies of agents; whole or not at all, and each user's own."""

from pathlib import Path

import pytest

import gateway.model as m
from gateway.errors import Conflict, Forbidden, GatewayError, Invalid, NotFound, OutcomeUnknown
from gateway.ports import AgentDefinition
from gateway.resources.agents import AgentService
from gateway.resources.skill_files import read_skill_files, read_skill_zip
from gateway.resources.skill_records import StoredSkill
from gateway.resources.skills import FILES_KIND, INSTALLED_KIND, KIND, SkillService
from gateway.storage.resources.memory import MemoryResources
from tests.support.skill_zips import FILES, SKILL, skill_text, zipped

DEMO = m.AgentCard(name="demo", model="demo-1")


@pytest.fixture
def resources() -> MemoryResources:
    return MemoryResources(clock=lambda: 1.0)


@pytest.fixture
def agents(resources: MemoryResources) -> AgentService:
    return AgentService(resources, lambda: {"demo": DEMO}, 1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, content in FILES.items():
        (tmp_path / "skills" / "offered" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "skills" / "offered" / path).write_bytes(content)
    (tmp_path / "skills" / "broken").mkdir()
    (tmp_path / "skills" / "broken" / "SKILL.md").write_text("no front matter")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "SKILL.md").write_text(SKILL)
    return tmp_path / "skills"


@pytest.fixture
def skills(resources: MemoryResources, agents: AgentService, folder: Path) -> SkillService:
    return SkillService(resources, folder, agents)


def names(found: object) -> list[str]:
    assert isinstance(found, list)
    return [one.name for one in found]


async def files_kept(resources: MemoryResources, owner: str = "ann") -> int:
    return len(await resources.list(FILES_KIND, owner, limit=1000))


async def test_the_library_has_the_operators_and_ones_own(skills: SkillService) -> None:
    made = await skills.upload("ann", "tidy", zipped())
    assert (made.name, made.body.description, made.body.preferred_for) == ("tidy", "Cleans tables.", ("tables",))
    assert names(await skills.library("ann")) == ["offered", "tidy"]
    assert names(await skills.library("bob")) == ["offered"]
    with pytest.raises(NotFound) as unknown:
        await skills.get("bob", "tidy")
    assert unknown.value.reason is m.FaultReason.SKILL_NOT_FOUND
    assert (await SkillService(MemoryResources(clock=lambda: 1.0), None, skills._agents).library("ann")) == []


@pytest.mark.parametrize("name", ["offered", "tidy"])
async def test_files_of_a_skill_can_be_read(skills: SkillService, name: str) -> None:
    await skills.upload("ann", "tidy", zipped())
    found = await skills.get("ann", name)
    assert found.paths("scripts") == ["tidy.py"]
    assert found.paths("resources") == ["deep/logo.bin", "template.csv"]
    for path, content in FILES.items():
        assert await skills.read("ann", found, path) == content
    for path in ("scripts/nobody.py", "scripts", "broken/SKILL.md"):
        with pytest.raises(NotFound) as unknown:
            await skills.read("ann", found, path)
        assert unknown.value.reason is m.FaultReason.FILE_NOT_FOUND
    for path in ("../outside/SKILL.md", "/etc/passwd", "scripts/../SKILL.md"):
        with pytest.raises(Invalid) as refused:
            await skills.read("ann", found, path)
        assert refused.value.reason is m.FaultReason.INVALID_PATH


@pytest.mark.parametrize("name", ["broken", "../outside", "outside", "..", ".", "", "offered/", "nobody"])
async def test_nothing_else_is_a_skill_of_the_operator(skills: SkillService, name: str) -> None:
    with pytest.raises(NotFound):
        await skills.get("ann", name)


async def test_a_name_is_taken_once(skills: SkillService, resources: MemoryResources) -> None:
    await skills.upload("ann", "tidy", zipped())
    await skills.upload("bob", "tidy", zipped())
    for name in ("tidy", "offered"):
        with pytest.raises(Conflict) as taken:
            await skills.upload("ann", name, zipped())
        assert taken.value.reason is m.FaultReason.SKILL_EXISTS
    for name in ("../x", "", "1st", "a" * 65):
        with pytest.raises(Invalid):
            await skills.upload("ann", name, zipped())
    assert await files_kept(resources) == 1


async def test_a_refused_upload_leaves_nothing(
    skills: SkillService, resources: MemoryResources, monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Invalid):
        await skills.upload("ann", "tidy", zipped({"SKILL.md": b"no", "scripts/a": b"a"}))
    create = resources.create

    async def refuse(kind: str, *given: object, **more: object) -> object:
        if kind == KIND:
            raise error
        return await create(kind, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(resources, "create", refuse)
    error: GatewayError = Conflict("too many")
    with pytest.raises(Conflict):
        await skills.upload("ann", "tidy", zipped())
    assert await files_kept(resources) == 0
    error = OutcomeUnknown("perhaps")
    with pytest.raises(OutcomeUnknown):
        await skills.upload("ann", "tidy", zipped())
    assert await files_kept(resources) == 1, "the skill may be there, and needs its files"


async def test_a_copy_is_independent(skills: SkillService, resources: MemoryResources) -> None:
    await skills.upload("ann", "tidy", zipped())
    copy = await skills.install("ann", "tidy", "demo")
    assert (copy.agent_id, copy.body.enabled) == ("demo", True)
    changed = await skills.rewrite("ann", "tidy", skill_text(description="Tidies."), "demo")
    assert (changed.body.description, changed.version) == ("Tidies.", 2)
    assert (await skills.get("ann", "tidy")).body.text == SKILL
    old = await resources.get(INSTALLED_KIND, "ann", changed.resource_id, 1)
    assert old.body["text"] == SKILL, "the old text stays as a version"
    await skills.remove("ann", "tidy")
    assert await skills.read("ann", changed, "scripts/tidy.py") == FILES["scripts/tidy.py"]
    assert await files_kept(resources) == 1
    await skills.remove("ann", "tidy", "demo")
    assert await files_kept(resources) == 0
    assert await skills.installed("ann", "demo") == []


async def test_a_copy_is_switched(skills: SkillService) -> None:
    await skills.install("ann", "offered", "demo")
    off = await skills.switch("ann", "offered", "demo", enabled=False)
    assert off.body.enabled is False
    assert await skills.switch("ann", "offered", "demo", enabled=False) == off, "twice the same is no new version"
    [listed] = await skills.installed("ann", "demo")
    assert listed.body.enabled is False
    assert await skills.installed("bob", "demo") == []
    with pytest.raises(Conflict) as taken:
        await skills.install("ann", "offered", "demo")
    assert taken.value.reason is m.FaultReason.SKILL_EXISTS
    for path, content in FILES.items():
        assert await skills.read("ann", off, path) == content


async def test_what_is_not_there_is_not_found(skills: SkillService) -> None:
    for call, reason in (
        (skills.install("ann", "nobody", "demo"), m.FaultReason.SKILL_NOT_FOUND),
        (skills.install("ann", "offered", "nobody"), m.FaultReason.AGENT_NOT_FOUND),
        (skills.installed("ann", "../demo"), m.FaultReason.AGENT_NOT_FOUND),
        (skills.switch("ann", "offered", "demo", enabled=True), m.FaultReason.SKILL_NOT_FOUND),
        (skills.remove("ann", "offered", "demo"), m.FaultReason.SKILL_NOT_FOUND),
        (skills.rewrite("ann", "offered", SKILL, "demo"), m.FaultReason.SKILL_NOT_FOUND),
        (skills.get("ann", "../x", "demo"), m.FaultReason.SKILL_NOT_FOUND),
    ):
        with pytest.raises(NotFound) as unknown:
            await call
        assert unknown.value.reason is reason


async def test_the_operators_skills_stay(skills: SkillService, folder: Path) -> None:
    with pytest.raises(Forbidden, match=r"management\.skills"):
        await skills.remove("ann", "offered")
    with pytest.raises(Forbidden):
        await skills.rewrite("ann", "offered", SKILL)
    with pytest.raises(Invalid):
        await skills.rewrite("ann", "offered", "no front matter")
    assert (folder / "offered" / "SKILL.md").read_text() == SKILL


async def test_ones_own_upload_can_be_rewritten(skills: SkillService) -> None:
    await skills.upload("ann", "tidy", zipped())
    changed: StoredSkill = await skills.rewrite("ann", "tidy", skill_text(description="Tidies."))
    assert (changed.body.description, changed.agent_id) == ("Tidies.", None)
    assert await skills.read("ann", changed, "scripts/tidy.py") == FILES["scripts/tidy.py"]


async def test_an_agent_takes_its_skills_with_it(
    skills: SkillService, agents: AgentService, resources: MemoryResources,
) -> None:
    for agent_id in ("tutor", None):
        made = await agents.create("ann", AgentDefinition(name="Tutor"), agent_id)
        await skills.install("ann", "offered", made.agent_id)
        assert await files_kept(resources) == 1
        await agents.delete("ann", made.agent_id)
        assert await files_kept(resources) == 0
        assert await resources.list(INSTALLED_KIND, "ann") == []


# -- sessions ---------------------------------------------------------------------------------------------------------

async def test_a_new_session_has_the_skills_that_are_switched_on(skills: SkillService, agents: AgentService) -> None:
    await skills.upload("ann", "tidy", zipped())
    for name in ("tidy", "offered"):
        await skills.install("ann", name, "demo")
    await skills.switch("ann", "offered", "demo", enabled=False)
    filled = await skills.filled("ann", "demo", m.Settings(system="Be kind."))
    assert filled.system == "Be kind."
    [ref] = filled.skills
    assert (ref.name, ref.description, ref.version) == ("tidy", "Cleans tables.", 1)
    assert await skills.filled("bob", "demo", m.Settings()) == m.Settings()
    assert await skills.filled("ann", "nobody", m.Settings()) == m.Settings()
    chosen = m.Settings(skills=(m.SkillRef(name="x", description="", skill_id="y"),))
    assert await skills.filled("ann", "demo", chosen) == chosen
    made = await agents.create("ann", AgentDefinition(name="Tutor"))
    assert await skills.filled("ann", "demo", m.Settings(agent_id=made.agent_id)) == m.Settings(agent_id=made.agent_id)


async def test_a_session_reads_the_files_of_the_version_that_it_has(skills: SkillService) -> None:
    await skills.install("ann", "offered", "demo")
    [ref] = (await skills.filled("ann", "demo", m.Settings())).skills
    await skills.rewrite("ann", "offered", skill_text(description="Other."), "demo")
    read = await skills.read_file("ann", ref, "SKILL.md")
    assert (read.text, read.size, read.name) == (SKILL, len(SKILL), "offered")
    assert read.files == ("resources/deep/logo.bin", "resources/template.csv", "scripts/tidy.py")
    assert (await skills.read_file("ann", ref, "resources/deep/logo.bin")).text is None
    with pytest.raises(NotFound):
        await skills.read_file("bob", ref, "SKILL.md")
    with pytest.raises(Invalid):
        await skills.read_file("ann", ref, "../SKILL.md")
    await skills.remove("ann", "offered", "demo")
    with pytest.raises(NotFound, match="was removed"):
        await skills.read_file("ann", ref, "SKILL.md")


# -- versions ---------------------------------------------------------------------------------------------------------

NEWER = {"SKILL.md": skill_text(description="Newer.").encode(), "scripts/new.py": b"new"}


async def test_a_version_keeps_its_text_and_its_files(skills: SkillService, resources: MemoryResources) -> None:
    await skills.upload("ann", "tidy", zipped())
    made, is_new = await skills.put("ann", "tidy", read_skill_files(NEWER))
    assert (made.version, made.body.description, is_new) == (2, "Newer.", False)
    first = await skills.get("ann", "tidy", version=1)
    assert await skills.read("ann", first, "scripts/tidy.py") == FILES["scripts/tidy.py"]
    assert await skills.read("ann", made, "scripts/new.py") == b"new"
    with pytest.raises(NotFound, match="has no file"):
        await skills.read("ann", made, "scripts/tidy.py")
    assert [one.version for one in await skills.versions("ann", "tidy")] == [1, 2]
    with pytest.raises(NotFound, match="has no version 3"):
        await skills.get("ann", "tidy", version=3)
    for skill, files in ((first, FILES), (made, NEWER)):
        read = read_skill_zip(await skills.packed("ann", skill))
        assert {"SKILL.md": read.text.encode(), **read.files} == files
    await skills.remove("ann", "tidy")
    assert await files_kept(resources) == 0


async def test_a_skill_of_the_operator_has_one_version(skills: SkillService) -> None:
    assert [one.version for one in await skills.versions("ann", "offered")] == [1]
    with pytest.raises(NotFound):
        await skills.get("ann", "offered", version=2)
    with pytest.raises(Forbidden):
        await skills.put("ann", "offered", read_skill_files(NEWER))


async def test_a_copy_remembers_the_version_that_it_was_made_of(skills: SkillService, agents: AgentService) -> None:
    await agents.create("ann", AgentDefinition(name="A", model="demo-1"), "a")
    await skills.upload("ann", "tidy", zipped())
    await skills.put("ann", "tidy", read_skill_files(NEWER))
    copy = await skills.install("ann", "tidy", "a", version=1)
    assert (copy.version, copy.body.origin, copy.body.description) == (1, 1, "Cleans tables.")


async def test_a_session_reads_the_version_that_it_has(skills: SkillService) -> None:
    first = (await skills.upload("ann", "tidy", zipped())).ref
    await skills.put("ann", "tidy", read_skill_files(NEWER))
    assert (await skills.read_file("ann", first, "SKILL.md")).text == SKILL
    newest = await skills.newest("ann", first)
    assert (newest.version, newest.description) == (2, "Newer.")
    offered = (await skills.get("ann", "offered")).ref
    assert (await skills.read_file("ann", offered, "SKILL.md")).text == SKILL
    await skills.remove("ann", "tidy")
    with pytest.raises(NotFound, match="was removed"):
        await skills.read_file("ann", first, "SKILL.md")
    assert await skills.newest("ann", first) == first


async def test_an_empty_choice_of_skills_is_a_choice(skills: SkillService, agents: AgentService) -> None:
    await agents.create("ann", AgentDefinition(name="A", model="demo-1"), "a")
    await skills.upload("ann", "tidy", zipped())
    await skills.install("ann", "tidy", "a")
    assert (await skills.filled("ann", "demo", m.Settings(agent_id="a", skills=()))).skills == ()
    filled = await skills.filled("ann", "demo", m.Settings(agent_id="a"))
    assert [one.name for one in filled.skills or ()] == ["tidy"]
