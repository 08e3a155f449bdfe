"""Serves the page: its files with strict headers, so that a browser runs nothing but them and loads nothing else."""

import gzip
import mimetypes
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from aiohttp import hdrs, web

from gateway.errors import NotFound
from gateway.http import Answers, public

FOLDER = Path(__file__).parent / "static"
PAGE, INDEX = "/console", "index.html"
CONTENT_POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data: blob:", "font-src 'self'",
    "connect-src 'self'", "frame-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
))
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}
TYPES = {
    ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css",
    ".json": "application/json", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}
"""Types that do not depend on the settings of this machine."""


class StaticFile(NamedTuple):
    """A file of the page, read once."""

    content: bytes
    media_type: str
    tag: str
    packed: bytes | None
    """The content as gzip, if the file is text."""


class StaticFiles:
    """The files of the page. A file that has changed on the disk is read again, so that the page can be worked on."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder.resolve()
        self._read: dict[Path, tuple[tuple[int, int], StaticFile]] = {}

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(PAGE, self.with_slash),
            web.get(f"{PAGE}/", self.page),
            web.get(f"{PAGE}/static/{{path:.+}}", self.file),
        ]

    @public
    @Answers(status=302)
    async def with_slash(self, request: web.Request) -> web.Response:
        """Redirect to the page, whose files have relative addresses: the console may be mounted anywhere."""
        target = request.rel_url.with_path(f"{request.rel_url.raw_path}/", encoded=True).with_query(request.query)
        return web.Response(status=302, headers={"Location": str(target)})

    @public
    @Answers(str, media_type="text/html", others={304: None})
    async def page(self, request: web.Request) -> web.Response:
        return self._answer(request, INDEX)

    @public
    @Answers(media_type="*/*", others={304: None})
    async def file(self, request: web.Request) -> web.Response:
        return self._answer(request, request.match_info["path"])

    def _answer(self, request: web.Request, path: str) -> web.Response:
        found = self.find(path)
        headers = {**PAGE_HEADERS, hdrs.ETAG: found.tag}
        if found.tag in request.headers.get(hdrs.IF_NONE_MATCH, ""):
            return web.Response(status=304, headers=headers)
        charset = "utf-8" if found.media_type.startswith("text/") else None
        content = found.content
        if found.packed is not None and _accepts_gzip(request.headers.get(hdrs.ACCEPT_ENCODING, "")):
            content, headers[hdrs.CONTENT_ENCODING] = found.packed, "gzip"
        return web.Response(body=content, content_type=found.media_type, charset=charset, headers=headers)

    def find(self, path: str) -> StaticFile:
        """The file of this path below the folder; nothing outside of the folder is found, nor anything hidden."""
        parts = path.split("/")
        if any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
            raise NotFound(f"the console has no file '{path[:200]}'")
        try:
            file = self._folder.joinpath(*parts).resolve(strict=True)
            stamp = file.stat()
            if not file.is_relative_to(self._folder) or not file.is_file():
                raise NotFound(f"the console has no file '{path[:200]}'")
            at = (stamp.st_mtime_ns, stamp.st_size)
            if (known := self._read.get(file)) is None or known[0] != at:
                known = self._read[file] = (at, _read(file))
        except (OSError, ValueError):
            raise NotFound(f"the console has no file '{path[:200]}'") from None
        return known[1]


def _read(file: Path) -> StaticFile:
    content = file.read_bytes()
    media_type = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    packed = gzip.compress(content, mtime=0) if media_type.startswith("text/") else None
    return StaticFile(content, media_type, f'"{sha256(content).hexdigest()[:32]}"', packed)


def _accepts_gzip(accepted: str) -> bool:
    """Whether a client has named gzip, and not with a weight of zero."""
    for coding in accepted.lower().split(","):
        name, _, weight = coding.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
