"""Section documents: the tree of documents, and what is in them."""

from collections.abc import Iterator
from typing import Any

from conformance.kit import expect
from conformance.kit.case import requirement
from conformance.zenflux.examination import ZenfluxExamination
from conformance.zenflux.management_common import call, manage, offered, own_name, refused

TREE, CONTENT = "/docs/structure", "/docs/content"


def _paths(value: Any) -> Iterator[str]:
    """Everything in a JSON value that is called a path."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "path" and isinstance(item, str):
                yield item
            yield from _paths(item)
    elif isinstance(value, list):
        for item in value:
            yield from _paths(item)


async def some_path(exam: ZenfluxExamination) -> str:
    """The path of a document, one in a folder if there is one; NotTestable if there is none."""
    with expect.preparing("a document"):
        data = (await manage(exam, "GET", TREE)).done()
        found = sorted(_paths(data), key=lambda path: "/" not in path)
        return expect.first("a path in the tree of documents", found, data)


@requirement("ZF-HTTP-3.12-01")
async def documents_are_listed(exam: ZenfluxExamination) -> None:
    """GET /docs/structure shows how the documents are ordered."""
    data = (await manage(exam, "GET", TREE)).done()
    expect.that(isinstance(data, dict | list), "the structure as an object or a list", data)


@requirement("ZF-HTTP-3.12-02")
async def a_document_is_shown(exam: ZenfluxExamination) -> None:
    """GET /docs/content/{path} shows what is in a document, also if it is in a folder."""
    path = await some_path(exam)
    data = (await manage(exam, "GET", f"{CONTENT}/{path}")).done()
    text = data.get("content") if isinstance(data, dict) else data
    expect.that(isinstance(text, str) and bool(text.strip()), f"the text of {path}", data)


@requirement("ZF-DOC-01.out")
async def the_tree_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {categories, total_files}; root comes first, files are Markdown, and total_files counts them."""
    await offered(exam, TREE)
    data = await exam.read("document_tree", TREE)
    files = [file["path"] for category in data["categories"] for file in category["files"]]
    expect.equal("total_files", len(files), data["total_files"])
    expect.that(all(path.endswith(".md") for path in files), "only files of Markdown", files)
    names = [category["id"] for category in data["categories"]]
    expect.that("root" not in names[1:], "the category root to be the first", names)


@requirement("ZF-DOC-02.out")
async def a_document_has_its_shape(exam: ZenfluxExamination) -> None:
    """data is {path, title, content, category}, with the path of the tree."""
    path = await some_path(exam)
    data = await exam.read("document", f"{CONTENT}/{path}")
    expect.equal("path", path, data["path"])


@requirement("ZF-DOC-02.err")
async def nothing_else_is_shown(exam: ZenfluxExamination) -> None:
    """A document that is not there is 404, and what leads out of the folder is 404 or 400."""
    await some_path(exam)
    refused(await call(exam, "GET", f"{CONTENT}/{own_name()}.md"), 404)
    for path in ("%2e%2e%2fREADME.md", "..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd"):
        reply = await exam.http.ask("GET", f"/api/v1{CONTENT}/{path}")
        expect.refused(reply, "it leads out of the folder of documents")
