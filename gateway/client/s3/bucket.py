"""The requests of one bucket: objects are stored whole or not at all, and each is looked at after it was stored."""

import asyncio
import hashlib
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from secrets import token_hex
from urllib.parse import unquote_plus
from xml.etree import ElementTree as Xml
from xml.sax.saxutils import escape

import structlog
from yarl import URL

from gateway.bucket_location import BucketLocation
from gateway.client.retry import retry
from gateway.client.transport import Http1Connection, HttpClient
from gateway.client.transport.error_messages import upstream_status
from gateway.errors import FilesTimedOut, FilesUnavailable, GatewayError, Invalid, NotFound, TimedOut
from gateway.ports import Clock, DownloadHeaders, FileContent, StoredObject, Timeouts

from .credentials import CredentialSource
from .signature import EMPTY_DIGEST, presigned_url, quoted, quoted_query, signed_headers

log = structlog.get_logger("dragoman.files")

PART_BYTES = 8 * 1024 * 1024
"""A larger object is sent in parts of so many bytes, and so many bytes of an upload are in memory at most."""
MAX_NAME_BYTES = 1024
PAGE = 1000
MD5 = re.compile(r"[0-9a-f]{32}")
NOT_FOUND = 404
TIMEOUTS = Timeouts(connect=5, first_byte=30, idle=30, total=86_400, attempts=3)


class Bucket:
    """The objects below the prefix of one bucket."""

    def __init__(
        self, location: BucketLocation, credentials: CredentialSource, clock: Clock, http: HttpClient | None = None,
    ) -> None:
        self.location = location
        self._credentials = credentials
        self._clock = clock
        self._http = http or HttpClient(location.endpoint, timeouts=TIMEOUTS)

    def below(self, name: str) -> "Bucket":
        """The objects below a further name, over the same connections."""
        prefix = f"{self.location.prefix}/{name}".lstrip("/")
        return Bucket(replace(self.location, prefix=prefix), self._credentials, self._clock, self._http)

    async def close(self) -> None:
        await self._http.close()

    # -- writing --------------------------------------------------------------------------------------------------

    async def put(self, name: str, chunks: AsyncIterator[bytes]) -> None:
        """Store all chunks, or nothing: what the store says it has stored is compared with what was sent."""
        parts = _parts(chunks)
        first = await anext(parts, b"")
        second = await anext(parts, None)
        try:
            if second is None:
                size, tag = len(first), await self._put_whole(name, first)
            else:
                size, tag = await self._put_parts(name, _chain(first, second, parts))
            await self._verify(name, size, tag)
        except (FilesUnavailable, FilesTimedOut):
            with suppress(GatewayError):
                await self.remove(name)
            raise

    async def _put_whole(self, name: str, body: bytes) -> str:
        return _checked_tag(await self._fetch("PUT", name, body), body)

    async def _put_parts(self, name: str, parts: AsyncIterator[bytes]) -> tuple[int, str]:
        upload, size, tags = (await self._fetch("POST", name, query={"uploads": ""})).field("UploadId"), 0, list[str]()
        try:
            async for part in parts:
                size += len(part)
                place = {"partNumber": str(len(tags) + 1), "uploadId": upload}
                tags.append(_checked_tag(await self._fetch("PUT", name, part, place), part))
            listed = "".join(f'<Part><PartNumber>{number}</PartNumber><ETag>"{escape(tag)}"</ETag></Part>'
                             for number, tag in enumerate(tags, 1))
            body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
            done = await self._fetch("POST", name, body, {"uploadId": upload})
            return size, done.field("ETag").strip('"')
        except BaseException:
            await asyncio.shield(self._abort(name, upload))
            raise

    async def _abort(self, name: str, upload: str) -> None:
        with suppress(GatewayError):
            await self._fetch("DELETE", name, query={"uploadId": upload})

    async def _verify(self, name: str, size: int, tag: str) -> None:
        """Raise unless the object is there with the size and the tag that it must have."""
        try:
            found = _size_and_tag((await self._fetch("HEAD", name)).headers)
        except NotFound:
            found = None
        if found is None or found != (size, tag):
            log.error("bucket_object_wrong", bucket=self.location.shown, object=name, expected=[size, tag],
                      found=found and list(found))
            raise FilesUnavailable("nothing was stored: the file store confirmed a file that it does not have")

    async def copy(self, name: str, to: str) -> None:
        source = {"x-amz-copy-source": f"/{self.location.bucket}/{quoted(self._key(name), '/')}"}
        (await self._fetch("PUT", to, headers=source)).field("ETag")

    async def remove(self, name: str) -> None:
        with suppress(NotFound):
            await self._fetch("DELETE", name)

    # -- reading --------------------------------------------------------------------------------------------------

    async def open(self, name: str) -> FileContent:
        headers = (await self._fetch("HEAD", name)).headers
        size, tag = _size_and_tag(headers)
        changed = parsedate_to_datetime(headers["last-modified"]).timestamp() if "last-modified" in headers else 0.0
        return FileContent(
            size=size, changed_at=changed, read=lambda start, end: self._read(name, start, end, tag))

    async def _read(self, name: str, start: int, end: int, tag: str) -> AsyncIterator[bytes]:
        left = end - start
        if left <= 0:
            return
        headers = {"range": f"bytes={start}-{end - 1}", **({"if-match": f'"{tag}"'} if tag else {})}
        with self._translated("GET", name):
            async with self._request("GET", name, headers=headers) as connection:
                while left > 0 and (chunk := await connection.read_body()):
                    left -= len(chunk)
                    yield chunk
        if left:
            log.error("bucket_read_wrong", bucket=self.location.shown, object=name, missing=left)
            raise FilesUnavailable("the file cannot be read just now: the file store sent another number of bytes")

    async def list(self, prefix: str) -> list[StoredObject]:
        found, more = list[StoredObject](), dict[str, str]()
        key = self._key(prefix)
        while True:
            query = {"list-type": "2", "encoding-type": "url", "max-keys": str(PAGE), "prefix": key, **more}
            page = (await self._fetch("GET", None, query=query)).xml()
            for one in page.iter("Contents"):
                name = unquote_plus(one.findtext("Key", "")).removeprefix(self._key(""))
                changed = datetime.fromisoformat(one.findtext("LastModified", "").replace("Z", "+00:00")).timestamp()
                found.append(StoredObject(name=name, size=int(one.findtext("Size", "0")), changed_at=changed))
            if page.findtext("IsTruncated") != "true":
                return found
            more = {"continuation-token": page.findtext("NextContinuationToken", "")}

    async def direct_url(self, name: str, headers: DownloadHeaders, seconds: float) -> str | None:
        if not self.location.has_direct_links:
            return None
        query = {"response-content-type": headers.content_type,
                 "response-content-disposition": headers.content_disposition}
        who = await self._credentials.find()
        return str(presigned_url(
            self._url(name), query, who, self.location.region, self._clock(), max(1, int(seconds))))

    async def check(self) -> None:
        """Store, read and remove a small object; raises what is wrong in the words of the store."""
        name, body = f".check-{token_hex(8)}", token_hex(16).encode()
        await self._send("PUT", name, body)
        try:
            if (await self._send("GET", name)).body != body:
                raise FilesUnavailable(f"{self.location.shown} returned other bytes than were stored")
            await self._send("GET", None, query={"list-type": "2", "prefix": self._key(name)})
        finally:
            await self._send("DELETE", name)

    # -- requests -------------------------------------------------------------------------------------------------

    def _key(self, name: str) -> str:
        key = f"{self.location.prefix}/{name}" if self.location.prefix else name
        if len(key.encode()) > MAX_NAME_BYTES:
            raise Invalid(f"with the prefix of the store, a path may have {MAX_NAME_BYTES} bytes")
        return key

    def _url(self, name: str | None, query: Mapping[str, str] | None = None) -> URL:
        path = self.location.bucket if name is None else f"{self.location.bucket}/{quoted(self._key(name), '/')}"
        return URL(f"{self.location.endpoint}/{path}{'?' + quoted_query(query) if query else ''}", encoded=True)

    async def _fetch(
        self, method: str, name: str | None, body: bytes | None = None, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "_Answer":
        """One answer, in the words that clients may see if the store does not give it."""
        with self._translated(method, name):
            return await self._send(method, name, body, query, headers)

    async def _send(
        self, method: str, name: str | None, body: bytes | None = None, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> "_Answer":
        async def once() -> _Answer:
            async with self._request(method, name, body, query, headers) as connection:
                return _Answer(connection.headers, await self._http.read_whole(connection))
        return await retry(once, self._http.timeouts.attempts)

    @asynccontextmanager
    async def _request(
        self, method: str, name: str | None, body: bytes | None = None, query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Http1Connection]:
        url, more = self._url(name, query), dict(headers or {})
        digest = EMPTY_DIGEST
        if body is not None:
            digest = hashlib.sha256(body).hexdigest()
            more["content-md5"] = b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        who = await self._credentials.find()
        signed = signed_headers(method, url, more, digest, who, self.location.region, self._clock())
        async with self._http.open(method, url, body, headers=signed, again=True) as connection:
            yield connection

    @contextmanager
    def _translated(self, method: str, name: str | None) -> Iterator[None]:
        """What goes wrong between the store and us: the operator reads the reason in the log, a client does not."""
        try:
            yield
        except FilesUnavailable:
            raise
        except GatewayError as error:
            if name is not None and upstream_status(error) == NOT_FOUND and "NoSuchBucket" not in error.message:
                raise NotFound("there is no such file") from None
            log.error("bucket_failed", bucket=self.location.shown, method=method, object=name, error=error.message)
            what = "read" if method in ("GET", "HEAD") else "stored or removed"
            if isinstance(error, TimedOut):
                raise FilesTimedOut(f"files cannot be {what} just now: the file store is too slow") from None
            raise FilesUnavailable(
                f"files cannot be {what} just now: the file store refuses or cannot be reached") from None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The headers and the body of an answer of the store."""

    headers: Mapping[str, str]
    body: bytes

    def field(self, name: str) -> str:
        """A field of the body; some stores begin a good answer and end it with an error."""
        found = self.xml().findtext(f".//{name}")
        if found is None:
            raise FilesUnavailable(f"the file store answered without {name}")
        return found

    def xml(self) -> Xml.Element:
        try:
            read = Xml.fromstring(self.body)  # noqa: S314  # the operator has chosen the store
        except Xml.ParseError:
            raise FilesUnavailable("the file store answered with something that is not XML") from None
        for one in read.iter():
            one.tag = one.tag.rpartition("}")[2]
        return read


def _size_and_tag(headers: Mapping[str, str]) -> tuple[int, str]:
    return int(headers.get("content-length", "-1")), headers.get("etag", "").strip('"')


def _checked_tag(answer: _Answer, body: bytes) -> str:
    """The tag of what was stored; where it is a hash, it must be that of what was sent."""
    tag = answer.headers.get("etag", "").strip('"')
    is_hash = MD5.fullmatch(tag) and "x-amz-server-side-encryption" not in answer.headers
    if is_hash and tag != hashlib.md5(body, usedforsecurity=False).hexdigest():
        raise FilesUnavailable("nothing was stored: the file store has stored other bytes than it was sent")
    return tag


async def _parts(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in parts of the size that a store takes."""
    part = bytearray()
    async for chunk in chunks:
        part += chunk
        while len(part) >= PART_BYTES:
            yield bytes(part[:PART_BYTES])
            del part[:PART_BYTES]
    if part:
        yield bytes(part)


async def _chain(first: bytes, second: bytes, others: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    yield second
    async for part in others:
        yield part
