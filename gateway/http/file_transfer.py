"""Receives files from multipart forms straight into the store of files."""

import hashlib
import mimetypes
import re
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from aiohttp import (
    BadContentDispositionHeader,
    BadContentDispositionParam,
    BodyPartReader,
    ClientPayloadError,
    MultipartReader,
    StreamReader,
    web,
)
from aiohttp.http_exceptions import HttpProcessingError

from gateway.errors import Invalid, TooLarge
from gateway.ports import Files, StoredFile

from .request import BodyDeadline, refuse_compressed

for _category in (BadContentDispositionHeader, BadContentDispositionParam):
    warnings.simplefilter("ignore", _category)  # a part without a name is refused; the warning is not needed
T = TypeVar("T")
FORM_DIGEST = web.RequestKey("digest", str)
"""Stands for the body of a request that could not be read to its end."""
MAX_FIELD, MAX_PARTS, MAX_NAME = 64 * 1024, 32, 255
MAX_REPEATED_PARTS = 1024
"""How many parts a form may have that is only compared with an earlier one."""
CHUNK = 256 * 1024
MAX_LINES = 10_000
"""The number of lines that a form may have outside of its parts: boundaries and headers."""
OCTET_STREAM = "application/octet-stream"
MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
UNSAFE_NAME_CHARACTERS = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069<>:"|?*]')


@dataclass(slots=True)
class UploadForm:
    """A form with one file."""

    fields: dict[str, str] = field(default_factory=dict)
    file: StoredFile | None = None
    name: str = ""
    media_type: str = OCTET_STREAM


async def receive_form(request: web.Request, files: Files, named: str = "file") -> tuple[UploadForm, StoredFile]:
    """Return the form and its file; a refused form leaves no file behind."""
    form, digests = UploadForm(), list[str]()
    try:
        async for part in _parts(request):
            if part.name == named:
                digests.append(await _store_file(part, form, files))
            else:
                form.fields[part.name or ""] = text = await _text(part)
                digests.append(_digest(part, hashlib.sha256(text.encode()).hexdigest()))
        if form.file is None:
            raise Invalid(f"{named}: the form has no such file", param=named)
    except BaseException:
        if form.file is not None:
            await files.remove(form.file.file_id)
        raise
    request[FORM_DIGEST] = _join_digests(digests)
    return form, form.file


async def receive_files(
    request: web.Request, store: Callable[[AsyncIterator[bytes]], Awaitable[T]], named: str = "files",
    most: int = MAX_PARTS,
) -> tuple[dict[str, str], list[tuple[str, T]]]:
    """Return the fields of a form, and its stored files, each with the path that the client gave."""
    fields, stored, digests = dict[str, str](), list[tuple[str, T]](), list[str]()
    async for part in _parts(request, most):
        whole = hashlib.sha256()
        if part.name in (named, f"{named}[]"):
            stored.append((part.filename or "", await store(_digested(part.chunks(), whole))))
        else:
            fields[part.name or ""] = text = await _text(part)
            whole.update(text.encode())
        digests.append(_digest(part, whole.hexdigest()))
    request[FORM_DIGEST] = _join_digests(digests)
    return fields, stored


async def receive_file_contents(
    request: web.Request, named: str, *, most: int, most_bytes: int,
) -> tuple[dict[str, str], list[tuple[str, bytes]]]:
    """Return the fields of a form, and the contents of its files, which have so many bytes together at most."""
    room = most_bytes

    async def read(chunks: AsyncIterator[bytes]) -> bytes:
        nonlocal room
        content = bytearray()
        async for chunk in chunks:
            content += chunk
            room -= len(chunk)
            if room < 0:
                raise TooLarge(f"{named}: must have at most {most_bytes} bytes", param=named)
        return bytes(content)

    return await receive_files(request, read, named, most=most)


async def digest_form(request: web.Request) -> str:
    """Return the digest that `receive_form` gives to the same form; the contents are thrown away."""
    digests = list[str]()
    async for part in _parts(request, MAX_REPEATED_PARTS):
        whole = hashlib.sha256()
        async for chunk in part.chunks():
            whole.update(chunk)
        digests.append(_digest(part, whole.hexdigest()))
    return _join_digests(digests)


def safe_file_name(given: str | None) -> str:
    """Return the name of a file without folders and without characters that could deceive a reader or a shell."""
    last = (given or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = UNSAFE_NAME_CHARACTERS.sub("_", last).strip(" .")
    return name[-MAX_NAME:] or "file"


def guess_media_type(given: str | None, name: str) -> str:
    """Return the media type that the client gave, or the one that the file name suggests."""
    media_type = (given or "").partition(";")[0].strip().lower()
    if not MEDIA_TYPE.fullmatch(media_type) or media_type == OCTET_STREAM:
        media_type = mimetypes.guess_type(name)[0] or OCTET_STREAM
    return media_type


# -- parts ------------------------------------------------------------------------------------------------------------
class _Part:
    """One part of a form, read in pieces within the time limit of the body."""

    def __init__(self, reader: BodyPartReader, deadline: BodyDeadline) -> None:
        self.name, self.filename, self.headers = reader.name, reader.filename, reader.headers
        self._reader = reader
        self._deadline = deadline

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await _read_in_time(self._deadline, self._reader.read_chunk(CHUNK)):
            yield bytes(chunk)


async def _store_file(part: _Part, form: UploadForm, files: Files) -> str:
    if form.file is not None:
        raise Invalid(f"{part.name}: one file at a time", param=part.name)
    form.name = safe_file_name(part.filename)
    form.media_type = guess_media_type(part.headers.get("Content-Type"), form.name)
    files.check_media_type(form.media_type)
    form.file = await files.store(part.chunks())
    return _digest(part, form.file.sha256)


class _LimitedLines:
    """The bytes of a form with a limited number of lines: aiohttp would search any number of lines for a boundary."""

    def __init__(self, content: StreamReader) -> None:
        self._content = content
        self._count = 0

    async def readline(self, **given: Any) -> bytes:
        self._count += 1
        if self._count > MAX_LINES:
            raise ValueError(f"it has more than {MAX_LINES} lines outside of its parts")
        return await self._content.readline(**given)

    def __getattr__(self, name: str) -> object:
        return getattr(self._content, name)


async def _parts(request: web.Request, most: int = MAX_PARTS) -> AsyncIterator[_Part]:
    if request.content_type != "multipart/form-data":
        raise Invalid("send the file as multipart/form-data", param="Content-Type")
    refuse_compressed(request)
    count, deadline = 0, BodyDeadline(request)
    try:
        reader = MultipartReader(request.headers, cast(StreamReader, _LimitedLines(request.content)))
    except (ValueError, AssertionError) as error:
        raise _unreadable(error) from None
    while (part := await _read_in_time(deadline, reader.next())) is not None:
        count += 1
        if count > most or not isinstance(part, BodyPartReader):
            raise Invalid(f"a form has {most} simple parts at most")
        yield _Part(part, deadline)


async def _read_in_time(deadline: BodyDeadline, reading: Awaitable[T]) -> T:
    try:
        return await deadline.read(reading)
    except (ValueError, AssertionError, HttpProcessingError, ClientPayloadError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> Invalid:
    return Invalid(f"the form cannot be read: {str(error)[:200] or 'it is malformed'}")


async def _text(part: _Part) -> str:
    read = bytearray()
    async for chunk in part.chunks():
        read += chunk
        if len(read) > MAX_FIELD:
            raise TooLarge(f"{part.name}: larger than {MAX_FIELD} bytes", param=part.name)
    try:
        return read.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{part.name}: not UTF-8", param=part.name) from None


async def _digested(chunks: AsyncIterator[bytes], whole: "hashlib._Hash") -> AsyncIterator[bytes]:
    async for chunk in chunks:
        whole.update(chunk)
        yield chunk


def _digest(part: _Part, content: str) -> str:
    return f"{part.name}\0{part.filename}\0{content}"


def _join_digests(digests: list[str]) -> str:
    return hashlib.sha256("\0\0".join(digests).encode("utf-8", "surrogatepass")).hexdigest()
