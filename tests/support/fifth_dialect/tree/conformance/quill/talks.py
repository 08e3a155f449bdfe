"""Section talks: how a talk begins."""

from conformance.quill.examination import SCHEMAS, QuillExamination

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.http import Reply


@requirement("QUILL-TALK-01")
async def a_talk_is_begun(exam: QuillExamination) -> None:
    """A new talk has an id."""
    is_begun(await exam.create())


def is_begun(reply: Reply) -> None:
    SCHEMAS.fit("created", expect.status(reply, 201).json(), f"the answer to {reply.asked}")
