"""Files come in: forms are read part by part, their file straight onto disk."""

import mimetypes
import re
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import sha256
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
from gateway.ports import Files, Stored

from .bodies import Deadline, check_plain

for _category in (BadContentDispositionHeader, BadContentDispositionParam):
    warnings.simplefilter("ignore", _category)  # a part without a name is refused; nobody need read of it

T = TypeVar("T")
DIGEST = web.RequestKey("digest", str)
"""Stands for the body of a request that could not be read as a whole."""

MAX_FIELD, MAX_PARTS, MAX_NAME = 64 * 1024, 32, 255
CHUNK = 256 * 1024
MAX_LINES = 10_000
"""How many lines a form may have beside what is in its parts: boundaries and headers."""
UNKNOWN = "application/octet-stream"
MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
UNFIT = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069<>:"|?*]')


@dataclass(slots=True)
class Form:
    """A form with one file in it."""

    fields: dict[str, str] = field(default_factory=dict)
    file: Stored | None = None
    name: str = ""
    media_type: str = UNKNOWN


async def receive(request: web.Request, files: Files, named: str = "file") -> tuple[Form, Stored]:
    """The form and its file; a form that is refused leaves nothing behind."""
    form, digests = Form(), list[str]()
    try:
        async for part in _parts(request):
            if part.name == named:
                digests.append(await _take(part, form, files))
            else:
                form.fields[part.name or ""] = text = await _text(part)
                digests.append(_digest(part, sha256(text.encode()).hexdigest()))
        if form.file is None:
            raise Invalid(f"{named}: the form has no such file", param=named)
    except BaseException:
        if form.file is not None:
            await files.remove(form.file.file_id)
        raise
    request[DIGEST] = _joined(digests)
    return form, form.file


async def receive_many(
    request: web.Request, store: Callable[[AsyncIterator[bytes]], Awaitable[T]], named: str = "files",
    most: int = MAX_PARTS,
) -> tuple[dict[str, str], list[tuple[str, T]]]:
    """The fields of a form, and its files as they were stored, each with the path its client calls it by."""
    fields, stored = dict[str, str](), list[tuple[str, T]]()
    async for part in _parts(request, most):
        if part.name == named:
            stored.append((part.filename or "", await store(part.chunks())))
        else:
            fields[part.name or ""] = await _text(part)
    return fields, stored


async def digest_of_parts(request: web.Request) -> str:
    """The digest that `receive` gives to the same form, read and thrown away."""
    digests = list[str]()
    async for part in _parts(request):
        whole = sha256()
        async for chunk in part.chunks():
            whole.update(chunk)
        digests.append(_digest(part, whole.hexdigest()))
    return _joined(digests)


def clean_name(said: str | None) -> str:
    """A file's name without folders, and without what could deceive a reader or a shell."""
    last = (said or "").replace("\\", "/").rsplit("/", 1)[-1]
    name = UNFIT.sub("_", last).strip(" .")
    return name[-MAX_NAME:] or "file"


def media_type_of(said: str | None, name: str) -> str:
    """What the client says it is, or what its name lets one think."""
    told = (said or "").partition(";")[0].strip().lower()
    if not MEDIA_TYPE.fullmatch(told) or told == UNKNOWN:
        told = mimetypes.guess_type(name)[0] or UNKNOWN
    return told


# -- parts ------------------------------------------------------------------------------------------------------------

class _Part:
    """One part of a form, read piece by piece within the time that the whole body has."""

    def __init__(self, reader: BodyPartReader, deadline: Deadline) -> None:
        self.name, self.filename, self.headers = reader.name, reader.filename, reader.headers
        self._reader = reader
        self._deadline = deadline

    async def chunks(self) -> AsyncIterator[bytes]:
        while chunk := await _read(self._deadline, self._reader.read_chunk(CHUNK)):
            yield bytes(chunk)


async def _take(part: _Part, form: Form, files: Files) -> str:
    if form.file is not None:
        raise Invalid(f"{part.name}: one file at a time", param=part.name)
    form.name = clean_name(part.filename)
    form.media_type = media_type_of(part.headers.get("Content-Type"), form.name)
    files.admit(form.media_type)
    form.file = await files.store(part.chunks())
    return _digest(part, form.file.sha256)


class _Lines:
    """The bytes of a form, of which only so many may be lines: aiohttp would look through any number for a boundary."""

    def __init__(self, content: StreamReader) -> None:
        self._content = content
        self._count = 0

    async def readline(self, **given: Any) -> bytes:
        self._count += 1
        if self._count > MAX_LINES:
            raise ValueError(f"it has more than {MAX_LINES} lines that belong to no part")
        return await self._content.readline(**given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._content, name)


async def _parts(request: web.Request, most: int = MAX_PARTS) -> AsyncIterator[_Part]:
    if request.content_type != "multipart/form-data":
        raise Invalid("send the file as multipart/form-data", param="Content-Type")
    check_plain(request)
    count, deadline = 0, Deadline(request)
    try:
        reader = MultipartReader(request.headers, cast(StreamReader, _Lines(request.content)))
    except (ValueError, AssertionError) as error:
        raise _unreadable(error) from None
    while (part := await _read(deadline, reader.next())) is not None:
        count += 1
        if count > most or not isinstance(part, BodyPartReader):
            raise Invalid(f"a form has {most} simple parts at most")
        yield _Part(part, deadline)


async def _read(deadline: Deadline, reading: Awaitable[T]) -> T:
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


def _digest(part: _Part, content: str) -> str:
    return f"{part.name}\0{part.filename}\0{content}"


def _joined(digests: list[str]) -> str:
    return sha256("\0\0".join(digests).encode("utf-8", "surrogatepass")).hexdigest()
