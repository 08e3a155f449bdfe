"""Files go out: as attachments that no browser runs, to whoever holds a link that was signed and has not expired."""

import asyncio
import re
from pathlib import Path
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from gateway.ports import Files

from .connections import admit
from .guard import Handler, public
from .uploads import UNKNOWN

INERT = re.compile(r"image/(png|jpeg|gif|webp)|audio/[a-z0-9.+-]+|video/[a-z0-9.+-]+|text/(plain|csv|markdown)"
                   r"|application/(json|zip|gzip|pdf|vnd\.[a-z0-9.+-]+)")
"""Types that a browser has no reason to run; every other one leaves as plain bytes."""

SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


class Fleeting(web.FileResponse):
    """A file that is gone when it has been sent."""

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        try:
            return await super().prepare(request)
        finally:
            await asyncio.to_thread(self._path.unlink, missing_ok=True)


def attachment(path: Path, name: str, media_type: str, *, fleeting: bool = False) -> web.FileResponse:
    """The file, to be saved and not to be shown; `fleeting` if nobody else wants it afterwards."""
    kind = media_type if INERT.fullmatch(media_type) and "xml" not in media_type else UNKNOWN
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    made = Fleeting if fleeting else web.FileResponse
    return made(path, headers={**SAFE, "Content-Type": kind, "Content-Disposition": disposition})


def linked(files: Files) -> Handler:
    """A handler for `…/{link}`: the bytes that a signed link stands for, for whoever has it."""
    @public
    async def serve(request: web.Request) -> web.StreamResponse:
        link = files.opened(request.match_info["link"])
        admit(request)
        return attachment(files.path(link.file_id), link.name, link.media_type)

    return serve


def address(request: web.Request, path: str) -> str:
    """A path of this server as the client reaches it."""
    return f"{request.scheme}://{request.host}{path}"
