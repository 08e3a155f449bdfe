"""Section memory: the Memory object, as it is made and read."""

from typing import Any

from conformance.blade.examination import BladeExamination
from conformance.blade.schema_owners import SCHEMAS
from conformance.kit import expect
from conformance.kit.case import requirement

PATH = "/api/memories"
LONGEST = 500


async def remembered(exam: BladeExamination, owner: str = "BL-REST-16", **more: Any) -> Any:
    """A new memory, deleted when the case is over."""
    given = {"content": "The examiners prefer short answers.", "type": "feedback"} | more
    return exam.read("memory", await exam.keep(PATH, given, owner), "a new memory")


@requirement("BL-MEM-01")
async def a_memory_is_complete(exam: BladeExamination) -> None:
    """A new memory has all its fields, when it is made and when it is read, and an id of its own."""
    memory, other = await remembered(exam), await remembered(exam)
    expect.that(memory["id"] != other["id"], "two memories to have two ids", [memory, other])
    read = await exam.got("memory", f"{PATH}/{memory['id']}")
    for name in ("id", "type", "content", "created_at", "source_session"):
        expect.equal(f"{name} of the memory read", memory[name], read[name])


async def _never_kept(exam: BladeExamination, why: str, **more: Any) -> None:
    """Expect a 4xx, or a memory that is as memories are: nothing says how a server comes by that."""
    reply = exam.offered(await exam.http.ask("POST", PATH, {"content": "A memory.", "type": "feedback"} | more))
    if not 200 <= reply.status < 300:
        expect.refused(reply, why)
        return
    for problem in SCHEMAS.problems("memory", reply.json()):
        expect.fail(f"a refusal, or a memory of the right shape, because {why}", problem)


@requirement("BL-MEM-02")
async def a_memory_is_feedback_or_experience(exam: BladeExamination) -> None:
    """Both types are kept; a third is not."""
    for kind in ("feedback", "experience"):
        expect.equal("the type", kind, (await remembered(exam, "BL-MEM-02", type=kind))["type"])
    await _never_kept(exam, "there is no such type", type="rumour")


@requirement("BL-MEM-03")
async def a_memory_has_1_to_500_characters(exam: BladeExamination) -> None:
    """One character and 500 are kept, Chinese ones too; none and 501 are not."""
    for content in ("x", "记" * LONGEST):
        expect.equal("the content", content, (await remembered(exam, "BL-MEM-03", content=content))["content"])
    await _never_kept(exam, "the content is empty", content="")
    await _never_kept(exam, "the content is too long", content="x" * (LONGEST + 1))


@requirement("BL-MEM-04")
async def a_record_type_is_one_of_two(exam: BladeExamination) -> None:
    """record_type is null, memory or skill_comment, on whatever memories there are."""
    for more in ({}, {"record_type": "memory"}, {"record_type": "skill_comment"}):
        memory = await remembered(exam, **more)
        if "record_type" in more:
            expect.that(memory.get("record_type") in (None, more["record_type"]), f"{more} or null", memory)


@requirement("BL-MEM-05")
async def a_new_memory_was_never_used(exam: BladeExamination) -> None:
    """A new memory has no hits, nothing supersedes it, and it is not disabled."""
    memory = await remembered(exam)
    expect.equal("hit_count", 0, memory["hit_count"])
    for name in ("last_hit_at", "superseded_by"):
        expect.equal(name, None, memory.get(name))
    expect.equal("disabled", False, memory["disabled"])
