"""Section skills: the library, what agents have installed, and what is uploaded."""

from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.expect import NotTestable
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import BAD, FORBIDDEN, UNKNOWN, heard, is_taken, manage, some_agent
from conformance.zenflux.rest_answer import listed
from conformance.zenflux.sample_skills import (
    SCRIPT,
    SampleSkill,
    change,
    in_library,
    install,
    is_in_library,
    is_installed,
    packed,
    sample,
    skill_text,
    upload,
)


@requirement("ZF-HTTP-3.6-01")
async def the_library_is_listed(exam: ZenfluxExamination) -> None:
    """GET /skills/global lists the skills of the library, among them one that was uploaded."""
    skill = sample()
    is_there = await in_library(exam, skill)
    answer = await manage(exam, "GET", "/skills/global")
    listed(answer.done(), "skills")
    if is_there and await heard(exam, f"/skills/detail/{skill.name}"):
        expect.that(skill.name in answer.reply.text, f"the skill {skill.name} in the list", answer.reply.told)


@requirement("ZF-HTTP-3.6-02")
async def installed_skills_are_listed(exam: ZenfluxExamination) -> None:
    """GET /skills/instance/{agent_id} lists what is installed for an agent, among them what was installed just now."""
    agent, skill = await some_agent(exam), sample()
    is_there = agent is not None and await in_library(exam, skill) and (await install(exam, skill, agent)).is_done
    answer = await manage(exam, "GET", f"/skills/instance/{agent or exam.stranger()}")
    if agent is None and answer.code == UNKNOWN and await heard(exam, "/skills/global"):
        raise NotTestable("no agent is listed that could have skills")
    listed(answer.done(), "skills")
    if is_there and await heard(exam, f"/skills/detail/{skill.name}", agent_id=str(agent)):
        expect.that(skill.name in answer.reply.text, f"the skill {skill.name} in the list", answer.reply.told)


async def _empty(exam: ZenfluxExamination, path: str) -> None:
    """Without a skill that could be named, a call that is there refuses an empty body."""
    is_taken(await manage(exam, "POST", path, {}), *BAD, *FORBIDDEN)


async def _prepared(exam: ZenfluxExamination) -> tuple[SampleSkill, str] | None:
    """A skill of the library, and an agent; None where there is no such thing."""
    agent, skill = await some_agent(exam), sample()
    return (skill, agent) if agent is not None and await in_library(exam, skill) else None


async def _possessed(exam: ZenfluxExamination) -> tuple[SampleSkill, str] | None:
    """A skill, and an agent that has it; None where there is no such thing."""
    found = await _prepared(exam)
    if found is None or not (await install(exam, *found)).is_done or await is_installed(exam, *found) is False:
        return None
    return found


@requirement("ZF-HTTP-3.6-03")
async def a_skill_is_installed(exam: ZenfluxExamination) -> None:
    """POST /skills/install gives a skill of the library to an agent, which then has it."""
    if (found := await _prepared(exam)) is None:
        await _empty(exam, "/skills/install")
    elif is_taken(await install(exam, *found), *FORBIDDEN):
        is_there = await is_installed(exam, *found)
        expect.that(is_there is not False, "the agent to have the skill that was installed", "it is not seen there")


@requirement("ZF-HTTP-3.6-04")
async def a_skill_is_uninstalled(exam: ZenfluxExamination) -> None:
    """POST /skills/uninstall takes a skill from an agent, which then no longer has it."""
    if (found := await _possessed(exam)) is None:
        await _empty(exam, "/skills/uninstall")
    elif is_taken(await change(exam, "uninstall", *found), *FORBIDDEN):
        is_there = await is_installed(exam, *found)
        expect.that(is_there is not True, "the agent to be without the skill", "it is still seen there")


@requirement("ZF-HTTP-3.6-05")
async def a_skill_is_switched(exam: ZenfluxExamination) -> None:
    """POST /skills/toggle switches an installed skill off and on, which can be seen."""
    if (found := await _possessed(exam)) is None:
        await _empty(exam, "/skills/toggle")
        return
    if is_taken(await change(exam, "toggle", *found, enabled=False), *FORBIDDEN):
        off = await _looks(exam, *found)
        is_taken(await change(exam, "toggle", *found, enabled=True))
        on = await _looks(exam, *found)
        expect.that(not (on and off) or on != off, "a skill that is off to look otherwise than one that is on", on)


async def _looks(exam: ZenfluxExamination, skill: SampleSkill, agent: str) -> list[Any]:
    """What is told of the skill of an agent; nothing if nobody can say."""
    detail = await heard(exam, f"/skills/detail/{skill.name}", agent_id=agent)
    listing = await heard(exam, f"/skills/instance/{agent}")
    items = listed(listing.body["data"], "skills") if listing else []
    told = [item for item in items if item.get("name") == skill.name]
    return [*told, detail.body["data"]] if detail else list[Any](told)


@requirement("ZF-HTTP-3.6-06")
async def a_skill_is_rewritten(exam: ZenfluxExamination) -> None:
    """POST /skills/update_content replaces the text of an installed skill; the skill then shows the new text."""
    if (found := await _possessed(exam)) is None:
        await _empty(exam, "/skills/update_content")
        return
    skill, agent = found
    text = skill_text(skill.name, f"Rewritten for {skill.word}.")
    if is_taken(await change(exam, "update_content", skill, agent, content=text), *FORBIDDEN):
        detail = await heard(exam, f"/skills/detail/{skill.name}", agent_id=agent)
        listing = await heard(exam, f"/skills/instance/{agent}")
        shown = [answer.reply.text for answer in (detail, listing) if answer and skill.word in answer.reply.text]
        is_new = not shown or any(f"Rewritten for {skill.word}" in text for text in shown)
        expect.that(is_new, "the skill to be shown with its new text", shown)


async def _some_skill(exam: ZenfluxExamination) -> tuple[SampleSkill, bool]:
    """A skill of the library, and whether it is ours."""
    skill = sample()
    if await in_library(exam, skill):
        return skill, True
    listing = await heard(exam, "/skills/global")
    if listing is None:
        return skill, False
    names = [item.get("name") for item in listed(listing.body["data"], "skills")]
    if not names or not isinstance(names[0], str):
        raise NotTestable("the library is empty, and nothing can be uploaded to it")
    return SampleSkill(names[0], ""), False


@requirement("ZF-HTTP-3.6-07")
async def a_skill_is_shown(exam: ZenfluxExamination) -> None:
    """GET /skills/detail/{name} shows a skill of the library, with what it is for."""
    skill, _ = await _some_skill(exam)
    answer = await manage(exam, "GET", f"/skills/detail/{skill.name}")
    expect.keyed(f"the data of {answer.reply.asked}", answer.done())
    expect.that(skill.word in answer.reply.text, f"the description of the skill, with {skill.word}", answer.reply.told)


@requirement("ZF-HTTP-3.6-08")
async def a_file_of_a_skill_is_shown(exam: ZenfluxExamination) -> None:
    """GET /skills/file/{name}/{type}/{file} shows what is in a file of a skill."""
    skill, is_ours = await _some_skill(exam)
    answer = await manage(exam, "GET", f"/skills/file/{skill.name}/{SCRIPT}")
    if not is_ours and answer.code == UNKNOWN and await heard(exam, "/skills/global"):
        raise NotTestable("nothing can be uploaded, and no file of a skill is known")
    answer.done()
    expect.that(skill.word in answer.reply.text, f"the content of the file, with {skill.word}", answer.reply.told)


@requirement("ZF-HTTP-3.6-09")
async def a_skill_is_uploaded(exam: ZenfluxExamination) -> None:
    """POST /skills/upload takes a new skill as a ZIP archive, and the library then has it."""
    skill = sample()
    if is_taken(await upload(exam, skill.name, packed(skill.files)), *FORBIDDEN):
        is_there = await is_in_library(exam, skill)
        expect.that(is_there is not False, "the library to have what was uploaded", "it is not seen there")
