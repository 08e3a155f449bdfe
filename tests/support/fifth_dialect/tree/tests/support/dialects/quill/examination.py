"""What tests of the examiners must know of Quill servers."""

from tests.support.conformance.examination_facts import Ask, ExaminationFacts


async def _make_foreign(ask: Ask) -> None:
    await ask("POST", "/talks", json={"name": "Theirs"})


FACTS = ExaminationFacts(
    make_foreign=_make_foreign,
    foreign_lists=("/talks",),
    quick_requirement="QUILL-TALK-01",
    recorded="created-with-200",
)
