"""Section files: what an upload says of the file."""

from urllib.parse import unquote

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.kit.multipart import Upload
from conformance.zenflux.examination import UPLOADS, ZenfluxExamination


@requirement("ZF-HTTP-3.4-01")
async def a_file_is_taken(exam: ZenfluxExamination) -> None:
    """An upload of file and user_id is answered with its id, name, size, type, address and time; ids are unique."""
    files = [
        Upload("examined.txt", b"Hello from the examiners.\n", "text/plain"),
        Upload("报告 1.pdf", bytes(range(256)) * 300, "application/pdf"),
    ]
    kept = [await exam.upload(file) for file in (*files, files[0])]
    told = [[item["file_size"], item["file_type"]] for item in kept]
    expect.equal("sizes and types", [[len(file.content), file.content_type] for file in (*files, files[0])], told)
    expect.equal("the names", [file.name for file in (*files, files[0])], [item["file_name"] for item in kept])
    expect.that(len({item["file_id"] for item in kept}) == 3, "an id for each upload", kept)


@requirement("ZF-HTTP-3.4-01")
async def a_form_without_a_file_is_refused(exam: ZenfluxExamination) -> None:
    """Without the field `file`, or without a form, an upload is refused in the wrapper."""
    (await exam.post_form(UPLOADS, {"user_id": exam.user})).refused("there is no file")
    (await exam.ask("POST", UPLOADS, {"file": "x", "user_id": exam.user})).refused("it is no form")


@requirement("G-ZF-32")
async def odd_uploads_do_no_harm(exam: ZenfluxExamination) -> None:
    """user_id may be left out; an empty file is kept or refused."""
    await exam.upload(Upload("examined.txt", b"Hello", "text/plain"))
    nameless = await exam.post_form(UPLOADS, {"file": Upload("examined.txt", b"Hello", "text/plain")})
    expect.that(nameless.is_done, "an upload without user_id to be taken", nameless.reply.told)
    empty = await exam.post_form(UPLOADS, {"file": Upload("empty.txt", b"", "text/plain"), "user_id": exam.user})
    if empty.is_done:
        if exam.described("upload", empty.body["data"], f"the data of POST {UPLOADS}"):
            expect.equal("the size of an empty file", 0, empty.body["data"]["file_size"])
    else:
        empty.refused("the file is empty")


@requirement("G-ZF-32", destructive="uploads files under names that a careless server takes for places elsewhere")
async def odd_names_lead_nowhere(exam: ZenfluxExamination) -> None:
    """A name with ../ is refused, or never reaches the address."""
    for name in ("../../examined.txt", "..\\..\\examined.txt", "/etc/examined"):
        odd = await exam.post_form(UPLOADS, {"file": Upload(name, b"Hello", "text/plain"), "user_id": exam.user})
        if not odd.is_done:
            odd.refused("the name leads elsewhere")
            continue
        exam.described("upload", odd.body["data"], f"the data of POST {UPLOADS}")
        parts = unquote(odd.body["data"]["file_url"]).replace("\\", "/").split("/")
        expect.that(".." not in parts, "an address that does not lead elsewhere", odd.body["data"])
