"""Documents of the ZenFlux reference server: a folder of Markdown, in memory."""

from aiohttp import web

from conformance.faults.zenflux.front import Front
from conformance.faults.zenflux.state import Body, Refusal

FILES = {
    "overview.md": "# What there is\n\nOne agent, and those that are made.\n",
    "guides/first-steps.md": "# First steps\n\nSay hello.\n",
}
ROOT = "root"


class Documents:
    """Answers requests below /docs."""

    def __init__(self, front: Front) -> None:
        self.front = front

    def document_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/docs/structure", self.get_structure),
            web.get("/docs/content/{path:.+}", self.get_document),
        ]

    def document_title(self, text: str) -> str:
        return text.partition("\n")[0].removeprefix("# ")

    def document_category(self, path: str) -> str:
        return path.partition("/")[0] if "/" in path else ROOT

    def document_category_of(self, name: str) -> Body:
        """A category and its files."""
        about = {"id": name, "name": "Overview" if name == ROOT else name, "icon": "📚", "description": ""}
        paths = [path for path in FILES if self.document_category(path) == name]
        return about | {"files": [self.document_entry(path) for path in paths]}

    def document_entry(self, path: str) -> Body:
        return {"name": path.rpartition("/")[2], "path": path, "title": self.document_title(FILES[path])}

    def document(self, path: str) -> Body:
        try:
            text = FILES[path]
        except KeyError:
            raise Refusal(404, "DOC_NOT_FOUND", "There is no such document.") from None
        category = self.document_category(path)
        return {"path": path, "title": self.document_title(text), "content": text, "category": category}

    async def get_structure(self, request: web.Request) -> web.StreamResponse:
        names = dict.fromkeys(map(self.document_category, FILES))
        categories = [self.document_category_of(name) for name in names]
        return self.front.reply({"categories": categories, "total_files": len(FILES)})

    async def get_document(self, request: web.Request) -> web.StreamResponse:
        return self.front.reply(self.document(request.match_info["path"]))
