"""Section lines: how a line is answered."""

from conformance.quill.examination import SCHEMAS, QuillExamination

from conformance.kit import expect
from conformance.kit.case import requirement


@requirement("QUILL-LINE-01")
async def a_line_is_answered(exam: QuillExamination) -> None:
    """The stream begins with opened, goes on with words and ends with closed."""
    with expect.preparing("a talk"):
        talk = expect.status(await exam.create(), 201).object()["talk"]
    names = []
    async with exam.http.stream("POST", f"/talks/{talk}/lines", {"text": exam.profile.line}) as stream:
        expect.that(stream.is_event_stream, f"{stream.asked} to be answered with a stream", stream.status)
        while (event := await stream.next()) is not None:
            expect.member("an event", ("opened", "words", "closed"), event.event)
            SCHEMAS.fit(f"event.{event.event}", expect.parsed(event.data, "an event"), "an event")
            names.append(event.event)
    expect.that(names[:1] == ["opened"] and names[-1:] == ["closed"], "opened first and closed last", names)
    expect.that(set(names[1:-1]) == {"words"}, "words between them, and nothing else", names)
