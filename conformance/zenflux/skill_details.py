"""Section skill_details: the shapes of answers about skills, what is refused, and what changes do."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import BAD, TAKEN, TOO_LARGE, UNKNOWN, coded, heard, manage, obtained
from conformance.zenflux.rest_answer import listed
from conformance.zenflux.sample_skills import (
    BINARY,
    DEEP,
    IMAGE,
    LIBRARY,
    SCRIPT,
    SampleSkill,
    agent_of,
    bomb,
    change,
    install,
    installed_skill,
    library_skill,
    packed,
    sample,
    skill_text,
    upload,
)

LONG = 257 * 1024


async def _changed(exam: ZenfluxExamination, action: str, skill: SampleSkill, agent: str, **more: Any) -> Any:
    """The data of a change that is carried out."""
    return await obtained(exam, "POST", f"/skills/{action}", {"skill_name": skill.name, "agent_id": agent, **more})


def _named(what: str, data: Any, **wanted: Any) -> None:
    """An object that names what it is about."""
    found = expect.keyed(what, data, *wanted)
    expect.equal(what, wanted, {name: found[name] for name in wanted})


async def _summary(exam: ZenfluxExamination, skill: SampleSkill, path: str) -> dict[str, Any]:
    """What a list says of a skill."""
    with expect.preparing("a skill in a list"):
        items = listed((await manage(exam, "GET", path)).done(), "skills")
        found = (item for item in items if item.get("name") == skill.name)
        return expect.first(f"{skill.name} in {path}", found, items)


async def _text(exam: ZenfluxExamination, skill: SampleSkill, **query: str) -> Any:
    """The text that a skill is shown with."""
    with expect.preparing("the text of a skill"):
        data = (await manage(exam, "GET", f"/skills/detail/{skill.name}", **query)).done()
        return expect.keyed("the detail", data, "content")["content"]


@requirement("ZF-SK-01.out")
async def the_library_is_counted(exam: ZenfluxExamination) -> None:
    """GET /skills/global is {total, skills}; each skill is of "global" and has a name, a description and a status."""
    skill = await library_skill(exam)
    data = await obtained(exam, "GET", "/skills/global")
    exam.schemas.fit("skill_list", data, "the data of GET /skills/global")
    expect.equal("total", len(data["skills"]), data["total"])
    expect.equal("whose they are", {LIBRARY}, {item["agent_id"] for item in data["skills"]})
    expect.subset("the names", [skill.name], [item["name"] for item in data["skills"]])


@requirement("ZF-SK-02.out")
async def installed_skills_are_counted(exam: ZenfluxExamination) -> None:
    """GET /skills/instance/{agent_id} is {total, skills}, and each skill names the agent."""
    _, agent = await installed_skill(exam)
    data = await obtained(exam, "GET", f"/skills/instance/{agent}")
    exam.schemas.fit("skill_list", data, f"the data of GET /skills/instance/{agent}")
    expect.equal("total", len(data["skills"]), data["total"])
    expect.equal("whose they are", {agent}, {item["agent_id"] for item in data["skills"]})


@requirement("ZF-SK-02.err")
async def unknown_agents_have_no_skills(exam: ZenfluxExamination) -> None:
    """GET /skills/instance/{agent_id} is a 404 for an agent that nobody has, and 400 or 404 for what is no name."""
    await obtained(exam, "GET", "/skills/global")
    coded(await manage(exam, "GET", f"/skills/instance/{exam.stranger()}"), "nobody has this agent", UNKNOWN)
    coded(await manage(exam, "GET", "/skills/instance/no%20name!"), "this is no name", *BAD, UNKNOWN)


@requirement("ZF-SK-03.out")
async def an_installation_is_told(exam: ZenfluxExamination) -> None:
    """POST /skills/install is answered with skill_name and agent_id."""
    agent, skill = await agent_of(exam), await library_skill(exam)
    with expect.preparing("an installation"):
        data = (await install(exam, skill, agent)).done()
    _named("the data of POST /skills/install", data, skill_name=skill.name, agent_id=agent)


@requirement("ZF-SK-03.err")
async def wrong_installations_are_refused(exam: ZenfluxExamination) -> None:
    """POST /skills/install: an unknown skill or agent is a 404, what is installed a 409, a bad name or body a 400."""
    skill, agent = await installed_skill(exam)
    coded(await install(exam, skill, agent), "it is installed already", TAKEN)
    coded(await install(exam, sample(), agent), "nobody has this skill", UNKNOWN)
    coded(await install(exam, skill, exam.stranger()), "nobody has this agent", UNKNOWN)
    for body in ({}, {"skill_name": skill.name}, {"agent_id": agent}, {"skill_name": 7, "agent_id": agent}):
        coded(await manage(exam, "POST", "/skills/install", body), "the body is not whole", *BAD)
    bad = {"skill_name": "../elsewhere", "agent_id": agent}
    coded(await manage(exam, "POST", "/skills/install", bad), "this is no name", *BAD)


@requirement("ZF-SK-03.does")
async def an_installed_skill_is_a_copy(exam: ZenfluxExamination) -> None:
    """A skill is enabled when it is installed; changing it leaves the one of the library as it was."""
    skill, agent = await installed_skill(exam)
    found = await _summary(exam, skill, f"/skills/instance/{agent}")
    expect.equal("is_enabled of a skill just installed", True, found.get("is_enabled"))
    await _changed(exam, "update_content", skill, agent, content=skill_text(skill.name, "Rewritten."))
    expect.equal("the text in the library", skill.text, await _text(exam, skill))


@requirement("ZF-SK-04.out")
async def a_removal_is_told(exam: ZenfluxExamination) -> None:
    """POST /skills/uninstall is answered with skill_name and agent_id."""
    skill, agent = await installed_skill(exam)
    data = await _changed(exam, "uninstall", skill, agent)
    _named("the data of POST /skills/uninstall", data, skill_name=skill.name, agent_id=agent)


@requirement("ZF-SK-04.err")
async def what_is_not_installed_cannot_be_removed(exam: ZenfluxExamination) -> None:
    """POST /skills/uninstall is a 404 for a skill that the agent does not have, a 400 for a body that is not whole."""
    skill, agent = await installed_skill(exam)
    coded(await change(exam, "uninstall", sample(), agent), "the agent does not have it", UNKNOWN)
    coded(await manage(exam, "POST", "/skills/uninstall", {}), "the body is not whole", *BAD)
    await _changed(exam, "uninstall", skill, agent)
    coded(await change(exam, "uninstall", skill, agent), "it is gone already", UNKNOWN)


@requirement("ZF-SK-05.out")
async def a_switch_is_told(exam: ZenfluxExamination) -> None:
    """POST /skills/toggle is answered with skill_name, agent_id and enabled."""
    skill, agent = await installed_skill(exam)
    for enabled in (False, True):
        data = await _changed(exam, "toggle", skill, agent, enabled=enabled)
        what = "the data of POST /skills/toggle"
        _named(what, data, skill_name=skill.name, agent_id=agent, enabled=enabled)


@requirement("ZF-SK-05.err")
async def wrong_switches_are_refused(exam: ZenfluxExamination) -> None:
    """POST /skills/toggle is a 404 for a skill that is not installed, and a 400 without a boolean `enabled`."""
    skill, agent = await installed_skill(exam)
    coded(await change(exam, "toggle", sample(), agent, enabled=True), "the agent does not have it", UNKNOWN)
    coded(await change(exam, "toggle", skill, agent), "it does not say whether", *BAD)
    coded(await change(exam, "toggle", skill, agent, enabled="perhaps"), "enabled is no boolean", *BAD)


@requirement("ZF-SK-05.does")
async def a_disabled_skill_stays_installed(exam: ZenfluxExamination) -> None:
    """A skill that is switched off stays in the list, with is_enabled false; to switch it off again is a success."""
    skill, agent = await installed_skill(exam)
    await _summary(exam, skill, f"/skills/instance/{agent}")
    await _changed(exam, "toggle", skill, agent, enabled=False)
    for enabled in (False, True):
        (await change(exam, "toggle", skill, agent, enabled=enabled)).done()
        items = listed(await obtained(exam, "GET", f"/skills/instance/{agent}"), "skills")
        found = [item.get("is_enabled") for item in items if item.get("name") == skill.name]
        expect.equal("is_enabled of the skill in the list", [enabled], found)


@requirement("ZF-SK-06.out")
async def a_new_text_is_told(exam: ZenfluxExamination) -> None:
    """POST /skills/update_content is answered with skill_name and agent_id."""
    skill, agent = await installed_skill(exam)
    data = await _changed(exam, "update_content", skill, agent, content=skill.text)
    _named("the data of POST /skills/update_content", data, skill_name=skill.name, agent_id=agent)


@requirement("ZF-SK-06.err")
async def wrong_texts_are_refused(exam: ZenfluxExamination) -> None:
    """POST /skills/update_content is a 404 for what is not installed; a bad or too large text is refused."""
    skill, agent = await installed_skill(exam)
    answer = await change(exam, "update_content", sample(), agent, content=skill.text)
    coded(answer, "the agent does not have it", UNKNOWN)
    coded(await change(exam, "update_content", skill, agent), "there is no content", *BAD)
    coded(await change(exam, "update_content", skill, agent, content="# No head"), "it has no front matter", *BAD)
    large = await change(exam, "update_content", skill, agent, content=skill.text + "x" * LONG)
    coded(large, "it is larger than 256 KiB", *BAD, TOO_LARGE)
    expect.equal("the text that was there", skill.text, await _text(exam, skill, agent_id=agent))


@requirement("ZF-SK-06.does")
async def the_description_follows_the_text(exam: ZenfluxExamination) -> None:
    """After POST /skills/update_content the description is that of the new front matter."""
    skill, agent = await installed_skill(exam)
    description = f"Rewritten for {skill.word}."
    await _changed(exam, "update_content", skill, agent, content=skill_text(skill.name, description))
    found = await _summary(exam, skill, f"/skills/instance/{agent}")
    expect.equal("the description", description, found.get("description"))


@requirement("ZF-SK-07.in")
async def the_skill_of_an_agent_is_shown(exam: ZenfluxExamination) -> None:
    """GET /skills/detail/{name}?agent_id= shows the skill as the agent has it, not as the library has it."""
    skill, agent = await installed_skill(exam)
    data = expect.keyed("the detail", await obtained(exam, "GET", f"/skills/detail/{skill.name}", agent_id=agent))
    expect.equal("whose skill is shown", agent, data.get("agent_id"))


@requirement("ZF-SK-07.out")
async def a_skill_has_its_details(exam: ZenfluxExamination) -> None:
    """GET /skills/detail/{name} has the text of a skill, what it is for, and the names of its scripts and resources."""
    skill = await library_skill(exam)
    path = f"/skills/detail/{skill.name}"
    data = await obtained(exam, "GET", path)
    exam.schemas.fit("skill_detail", data, f"the data of GET {path}")
    wanted = {"name": skill.name, "agent_id": LIBRARY, "content": skill.text, "preferred_for": ["tables"]}
    _named("the detail", data, **wanted)
    expect.equal("scripts", ["tidy.py"], data["scripts"])
    expect.equal("how many resources", 2, len(data["resources"]))


@requirement("ZF-SK-07.err")
async def unknown_skills_are_not_shown(exam: ZenfluxExamination) -> None:
    """GET /skills/detail/{name} is a 404 for a skill or an agent that nobody has."""
    skill = await library_skill(exam)
    coded(await manage(exam, "GET", f"/skills/detail/{sample().name}"), "nobody has this skill", UNKNOWN)
    query = {"agent_id": exam.stranger()}
    answer = await manage(exam, "GET", f"/skills/detail/{skill.name}", **query)
    coded(answer, "nobody has this agent", UNKNOWN)


@requirement("ZF-SK-08.in")
async def files_may_lie_in_folders(exam: ZenfluxExamination) -> None:
    """{file} may have folders in it, and ?agent_id= names the skill of an agent."""
    skill, agent = await installed_skill(exam)
    await obtained(exam, "GET", f"/skills/file/{skill.name}/{SCRIPT}")
    for query in ({}, {"agent_id": agent}):
        data = (await manage(exam, "GET", f"/skills/file/{skill.name}/{DEEP}", **query)).done()
        _named("the file", data, content=skill.files[DEEP].decode())


@requirement("ZF-SK-08.out")
async def a_file_has_its_details(exam: ZenfluxExamination) -> None:
    """A file is shown with its names, its size and its content; one that is no UTF-8 has is_binary true, no content."""
    skill = await library_skill(exam)
    for path, is_binary in ((SCRIPT, False), (IMAGE, True)):
        data = await obtained(exam, "GET", f"/skills/file/{skill.name}/{path}")
        exam.schemas.fit("skill_file", data, f"the data of GET /skills/file/{skill.name}/{path}")
        kind, _, name = path.partition("/")
        size = len(BINARY if is_binary else skill.files[path])
        _named("the file", data, skill_name=skill.name, file_type=kind, file_name=name, size=size)
        content = None if is_binary else skill.files[path].decode()
        _named("what is in the file", data, is_binary=is_binary, content=content)


@requirement("ZF-SK-08.err")
async def nothing_else_is_shown_as_a_file(exam: ZenfluxExamination) -> None:
    """Another type is a 400, an unknown skill or file a 404, and a path that leads elsewhere 400 or 404."""
    skill = await library_skill(exam)
    place = f"/skills/file/{skill.name}"
    coded(await manage(exam, "GET", f"{place}/others/tidy.py"), "there is no such type", *BAD)
    coded(await manage(exam, "GET", f"{place}/scripts/none.py"), "there is no such file", UNKNOWN)
    coded(await manage(exam, "GET", f"/skills/file/{sample().name}/{SCRIPT}"), "nobody has this skill", UNKNOWN)
    for path in ("..%2FSKILL.md", "..%2F..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "..%2Fresources%2Fpicture.bin"):
        coded(await manage(exam, "GET", f"{place}/scripts/{path}"), "it leads out of the folder", *BAD, UNKNOWN)


@requirement("ZF-SK-09.in")
async def a_skill_may_be_packed_in_its_folder(exam: ZenfluxExamination) -> None:
    """SKILL.md may lie in the only folder of the archive, and skill_name may be a field of the form."""
    await library_skill(exam)
    skill = sample()
    archive = packed({f"{skill.name}/{path}": content for path, content in skill.files.items()})
    (await upload(exam, skill.name, archive)).done("ZF-SK-09.in")
    data = expect.keyed("the detail", await obtained(exam, "GET", f"/skills/detail/{skill.name}"))
    expect.equal("its scripts", ["tidy.py"], data.get("scripts", ["tidy.py"]))
    other = sample()
    (await upload(exam, other.name, packed(other.files), skill_name=other.name)).done("ZF-SK-09.in")


@requirement("ZF-SK-09.out")
async def an_upload_of_a_skill_is_told(exam: ZenfluxExamination) -> None:
    """POST /skills/upload is answered with skill_name and description."""
    skill = sample()
    with expect.preparing("an upload"):
        data = (await upload(exam, skill.name, packed(skill.files))).done()
    description = f"Tidies the tables of {skill.word}."
    _named("the data of POST /skills/upload", data, skill_name=skill.name, description=description)


@requirement("ZF-SK-09.err")
async def wrong_uploads_are_refused(exam: ZenfluxExamination) -> None:
    """POST /skills/upload: what is no skill is a 400, too large a one 400 or 413, a name that is taken a 409."""
    skill = await library_skill(exam)
    coded(await upload(exam, skill.name, packed(skill.files)), "there is such a skill already", TAKEN)
    coded(await exam.post_form("/skills/upload", {}, skill_name=sample().name), "there is no file", *BAD)
    coded(await upload(exam, "../elsewhere", packed(skill.files)), "this is no name", *BAD)
    for why, archive in _wrong_archives(skill).items():
        name = sample().name
        coded(await upload(exam, name, archive), why, *BAD, TOO_LARGE)
        left = await heard(exam, f"/skills/detail/{name}")
        expect.that(left is None or name not in left.reply.text, f"nothing to be left, because {why}", name)
    other = await upload(exam, sample().name, packed(skill.files), file_name="skill.tar")
    coded(other, "the file is not called .zip", *BAD)


def _wrong_archives(skill: SampleSkill) -> dict[str, bytes]:
    """Archives that are no skills, and why they are not."""
    empty = skill_text(skill.name, "''")
    return {
        "it is no archive": b"PK\x03\x04 and then nothing",
        "there is no SKILL.md": packed({"README.md": b"# Nothing"}),
        "SKILL.md has no front matter": packed({"SKILL.md": b"# Nothing"}),
        "the description is empty": packed({"SKILL.md": empty.encode()}),
        "a file leads out of the folder": packed(skill.files | {"../outside.txt": b"x"}),
        "it is larger than 8 MiB": bomb(),
        "there are more than 200 files": packed(skill.files | {f"resources/{n}.txt": b"x" for n in range(200)}),
    }
