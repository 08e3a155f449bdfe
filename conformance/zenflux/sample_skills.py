"""Skills that the examiners bring along: packed in memory, uploaded under a name of their own, and removed again."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

from conformance.kit import expect
from conformance.kit.expect import NotTestable
from conformance.kit.multipart import Upload
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import allowed, heard, is_refused, manage, some_agent
from conformance.zenflux.rest_answer import Answer

LIBRARY = "global"
BINARY = bytes(range(128, 256))
SCRIPT = "scripts/tidy.py"
DEEP = "resources/tables/template.csv"
IMAGE = "resources/picture.bin"
BOMB = 9 * 1024 * 1024


@dataclass(frozen=True)
class SampleSkill:
    """A skill with a name and a word of its own, by which it is recognised."""

    name: str
    word: str

    @property
    def text(self) -> str:
        return skill_text(self.name, f"Tidies the tables of {self.word}.")

    @property
    def files(self) -> dict[str, bytes]:
        script, table = f"print('{self.word}')\n".encode(), f"{self.word};1\n".encode()
        return {"SKILL.md": self.text.encode(), SCRIPT: script, DEEP: table, IMAGE: BINARY}


def sample() -> SampleSkill:
    """A skill that nobody has."""
    mark = uuid4().hex[:12]
    return SampleSkill(f"examined-{mark}", f"word{mark}")


def skill_text(name: str, description: str) -> str:
    """A SKILL.md."""
    about = f"name: {name}\ndescription: {description}\npreferred_for: [tables]"
    return f"---\n{about}\n---\n\n# Tidying\n\nRun the script.\n"


def packed(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of these files."""
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return kept.getvalue()


@cache
def bomb() -> bytes:
    """An archive that is small, and large when it is unpacked."""
    return packed({"SKILL.md": skill_text("bomb", "Large.").encode(), "resources/zeros.bin": bytes(BOMB)})


# -- in the library ----------------------------------------------------------------------------------------------------


async def upload(exam: ZenfluxExamination, name: str, archive: bytes, **more: str) -> Answer:
    """The answer to an upload; what it may have put into the library is removed after the case."""
    allowed(exam)
    file = Upload(more.pop("file_name", f"{name}.zip"), archive, "application/zip")
    fields: dict[str, str | Upload] = {"file": file, **more}
    query = {} if "skill_name" in more else {"skill_name": name}
    what = f"the upload {name}"
    is_first = what not in exam.undos
    exam.undo(what, "POST", "/skills/uninstall", {"skill_name": name, "agent_id": LIBRARY})
    answer = await exam.post_form("/skills/upload", fields, **query)
    if is_refused(answer) and is_first:
        exam.undos.pop(what)
    return answer


async def is_in_library(exam: ZenfluxExamination, skill: SampleSkill) -> bool | None:
    """Whether the library is seen to have a skill; None if nobody can say."""
    if await heard(exam, f"/skills/detail/{skill.name}"):
        return True
    listing = await heard(exam, "/skills/global")
    return None if listing is None else skill.name in listing.reply.text


async def in_library(exam: ZenfluxExamination, skill: SampleSkill) -> bool:
    """Upload a skill; whether it is there now."""
    answer = await upload(exam, skill.name, packed(skill.files))
    return answer.is_done and await is_in_library(exam, skill) is True


async def library_skill(exam: ZenfluxExamination) -> SampleSkill:
    """A skill in the library; without one nothing can be examined of it."""
    skill = sample()
    with expect.preparing("a skill in the library"):
        expect.that(await in_library(exam, skill), "an uploaded skill to be in the library", "it is not seen there")
    return skill


# -- installed ---------------------------------------------------------------------------------------------------------


async def agent_of(exam: ZenfluxExamination) -> str:
    """An agent to install skills on."""
    agent = await some_agent(exam)
    if agent is None:
        raise NotTestable("no agent is listed to which a skill could be given")
    return agent


async def install(exam: ZenfluxExamination, skill: SampleSkill, agent: str) -> Answer:
    """The answer to an installation, which is undone after the case."""
    body, what = {"skill_name": skill.name, "agent_id": agent}, f"the skill {skill.name} of {agent}"
    is_first = what not in exam.undos
    exam.undo(what, "POST", "/skills/uninstall", body)
    answer = await manage(exam, "POST", "/skills/install", body)
    if is_refused(answer) and is_first:
        exam.undos.pop(what)
    return answer


async def is_installed(exam: ZenfluxExamination, skill: SampleSkill, agent: str) -> bool | None:
    """Whether an agent is seen to have a skill; None if nobody can say, or if one says this and the other that."""
    detail = await heard(exam, f"/skills/detail/{skill.name}", agent_id=agent)
    listing = await heard(exam, f"/skills/instance/{agent}")
    if listing is None:
        return True if detail else None
    is_listed = skill.name in listing.reply.text
    return is_listed if is_listed is bool(detail) else None


async def installed_skill(exam: ZenfluxExamination) -> tuple[SampleSkill, str]:
    """A skill and the agent that has it; without one nothing can be examined of it."""
    agent, skill = await agent_of(exam), await library_skill(exam)
    with expect.preparing("an installed skill"):
        (await install(exam, skill, agent)).done()
        is_there = await is_installed(exam, skill, agent)
        expect.that(is_there is not False, "the skill to be installed", "it is not seen there")
    return skill, agent


async def change(exam: ZenfluxExamination, action: str, skill: SampleSkill, agent: str, **more: Any) -> Answer:
    """The answer to a change of a skill that an agent has."""
    body = {"skill_name": skill.name, "agent_id": agent, **more}
    return await manage(exam, "POST", f"/skills/{action}", body)
