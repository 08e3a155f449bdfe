"""Sends files as attachments that no browser runs: from the disk, from a store, and by signed links."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload

from gateway.ports import DownloadHeaders, FileContent, Files

from .answers import Answers
from .file_transfer import OCTET_STREAM
from .mount_prefix import mount_prefix
from .security import Handler, mark_authenticated, public

SAFE_MEDIA_TYPES = re.compile(
    r"image/(png|jpeg|gif|webp)|audio/[a-z0-9.+-]+|video/[a-z0-9.+-]+|text/(plain|csv|markdown)"
    r"|application/(json|zip|gzip|pdf|vnd\.[a-z0-9.+-]+)"
)
"""Types that a browser does not run; every other type is sent as plain bytes."""
DOWNLOAD_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}


class LocalFileResponse(web.FileResponse):
    """A file of this machine, which is discarded after it was sent if it was made for this reader."""

    def __init__(self, content: FileContent, headers: Mapping[str, str]) -> None:
        assert content.path is not None, "the file is on this machine"
        super().__init__(content.path, headers=headers)
        self._content = content

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        try:
            return await super().prepare(request)
        finally:
            if self._content.discard is not None:
                await self._content.discard()


class StoredFilePayload(Payload):
    """The bytes of a file in a store, from its first chunk, which has arrived; the request ends with its reader."""

    _autoclose = True

    def __init__(
        self, content: FileContent, first: bytes, chunks: AsyncGenerator[bytes], size: int, media_type: str,
    ) -> None:
        super().__init__(first, content_type=media_type)
        self._content, self._first, self._chunks = content, first, chunks
        self._size = size

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("the bytes of a stored file are read once")

    async def write(self, writer: AbstractStreamWriter) -> None:
        try:
            await writer.write(self._first)
            async for chunk in self._chunks:
                await writer.write(chunk)
        finally:
            await self._end()

    async def _end(self) -> None:
        await self._chunks.aclose()
        if self._content.discard is not None:
            await self._content.discard()


def bytes_attachment(content: bytes, name: str, media_type: str) -> web.Response:
    """Return bytes as a download."""
    return web.Response(body=content, headers=_download_headers(name, media_type))


async def attachment(
    request: web.Request, content: FileContent, name: str, media_type: str,
) -> web.StreamResponse:
    """Return the file as a download. A store that refuses is an error here, before the response begins."""
    headers = _download_headers(name, media_type)
    if content.path is not None:
        return LocalFileResponse(content, headers)
    start, end, status = _range(request, content.size)
    headers |= {"Accept-Ranges": "bytes"}
    if status == web.HTTPPartialContent.status_code:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{content.size}"
    elif status != web.HTTPOk.status_code:
        return web.Response(status=status, headers={"Content-Range": f"bytes */{content.size}"})
    chunks = _generator(content.read(start, end))
    first = b"" if request.method == "HEAD" else await anext(chunks, b"")
    body = StoredFilePayload(content, first, chunks, end - start, headers.pop("Content-Type"))
    return web.Response(status=status, body=body, headers=headers)


async def _generator(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    async for chunk in chunks:
        yield chunk


def _range(request: web.Request, size: int) -> tuple[int, int, int]:
    """Which bytes the client wants, and the status of the response."""
    try:
        wanted = request.http_range
    except ValueError:
        return 0, size, web.HTTPOk.status_code  # several ranges: the whole file is a right answer
    if wanted.start is None and wanted.stop is None:
        return 0, size, web.HTTPOk.status_code
    start, end, _ = wanted.indices(size)
    is_there = start < end
    status = web.HTTPPartialContent.status_code if is_there else web.HTTPRequestRangeNotSatisfiable.status_code
    return start, end, status


def download_headers(name: str, media_type: str) -> DownloadHeaders:
    """The headers with which another server may send the file."""
    headers = _download_headers(name, media_type)
    return DownloadHeaders(
        content_type=headers["Content-Type"], content_disposition=headers["Content-Disposition"])


def _download_headers(name: str, media_type: str) -> dict[str, str]:
    kind = media_type if SAFE_MEDIA_TYPES.fullmatch(media_type) and "xml" not in media_type else OCTET_STREAM
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    return {**DOWNLOAD_HEADERS, "Content-Type": kind, "Content-Disposition": disposition}


def signed_link_handler(files: Files) -> Handler:
    """Return a handler for `…/{link}`: it sends the file that a signed link names to anybody who has the link."""
    @public
    @Answers(media_type="*/*")
    async def serve(request: web.Request) -> web.StreamResponse:
        link = files.read_link(request.match_info["link"])
        mark_authenticated(request)
        return await attachment(request, await files.open(link.file_id), link.name, link.media_type)

    return serve


def absolute_url(request: web.Request, path: str) -> str:
    """Return the URL of a path of this server as the client sees it."""
    return f"{request.scheme}://{request.host}{mount_prefix(request.app)}{path}"
